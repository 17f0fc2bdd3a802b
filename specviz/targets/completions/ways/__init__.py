"""The three ways to verify a round, and what can be known of p in each."""
