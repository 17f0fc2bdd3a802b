"""The completions target: a model behind a text completions API.

From the network to the loop: `wire/transport` sends a `Request` and returns a `Reply`. `wire/dialect` writes a request
in the form that each engine expects. `reading/answers` turns the JSON of a reply into an `Answer`. `probe` finds out
what the server can do (`Findings`). `ways/scoring`, `ways/prefixes` and `ways/generating` are the three ways to verify
a round. `target` chooses one of them and implements `core/ports.py: Target`.
"""
