"""From the JSON of a reply to values that were checked."""
