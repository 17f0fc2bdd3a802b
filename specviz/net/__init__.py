"""The one door to the outside: proxy, certificates, redirects, whose key goes where, repeating, redaction.

Knows HTTP and nothing of what is asked of a server.
"""
