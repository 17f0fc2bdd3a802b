"""Targets verify drafts: one file or folder per kind."""
