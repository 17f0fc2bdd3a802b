"""Which draft, which K: suites of prompts, sweeps, prediction from one transcript, and what follows from them."""
