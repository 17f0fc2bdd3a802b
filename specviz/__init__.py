"""See, measure and trust speculative decoding."""

__version__ = "0.1.0"
