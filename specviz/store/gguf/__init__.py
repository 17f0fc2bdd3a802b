"""GGUF files: where they come from, and which of them are on this machine already."""
