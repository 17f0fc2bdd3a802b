"""What judges proposals: one file per kind."""
