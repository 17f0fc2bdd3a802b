"""HTTP to servers: proxy, certificates, redirects, which server gets a key, repeating, redaction.

It knows nothing of the content of requests.
"""
