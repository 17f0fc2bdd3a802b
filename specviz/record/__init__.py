"""Recorded runs: the state built from events, trace files, reports, and the pace at which events are shown."""
