"""Requests and replies over HTTP."""
