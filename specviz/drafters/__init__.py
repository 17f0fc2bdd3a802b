"""What proposes tokens: one file per kind."""
