"""What runs a model in this process, and what it needs of a model's files."""
