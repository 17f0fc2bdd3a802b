"""Prompts to measure with: built in, or from a file."""
