"""From names and the environment to the objects of a run."""
