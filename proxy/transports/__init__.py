"""The only part that moves bytes: between a client, the session, and a server."""
