"""A benchmark as charts and a table: pure functions of its rows."""
