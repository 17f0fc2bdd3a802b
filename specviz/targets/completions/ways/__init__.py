"""The three ways to verify a round: by scoring, by a batch of prefixes, by generating."""
