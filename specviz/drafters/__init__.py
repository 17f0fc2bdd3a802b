"""Drafters, one file per kind."""
