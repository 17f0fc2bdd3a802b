"""Trains a small draft model for a target, on texts that the target writes."""
