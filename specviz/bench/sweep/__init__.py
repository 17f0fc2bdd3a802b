"""Cells of a sweep, measured: plan, trials, rows, comparison."""
