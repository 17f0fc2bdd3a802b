"""A benchmark as charts, a table and sentences: pure functions from rows to what the page draws."""
