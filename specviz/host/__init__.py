"""The thread that owns the models, and the jobs that run in it."""
