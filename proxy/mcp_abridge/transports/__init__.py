"""The only package that moves bytes: between a client, the session and a server."""
