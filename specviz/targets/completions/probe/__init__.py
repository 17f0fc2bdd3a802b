"""What a server can do, tried out."""
