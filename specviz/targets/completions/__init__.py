"""A target behind an HTTP API with text completions.

From the wire inwards: `transport` sends a `Request` and gives a `Reply`; `dialect` knows what each engine wants to be
asked; `answers` turns a reply's JSON into an `Answer`; `probe` finds out what the server can do (`Findings`);
`scoring`, `prefixes` and `generating` are the three ways to verify a round; `target` chooses one and is the port.
"""
