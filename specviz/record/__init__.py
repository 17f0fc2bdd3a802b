"""What happened: events folded into a state, recordings, reports, and the pace at which they are shown."""
