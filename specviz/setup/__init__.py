"""Creates the objects of a run from names and the environment."""
