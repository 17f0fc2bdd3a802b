"""Distilling a small draft model from the target: what to ask it, and what to measure the result with."""
