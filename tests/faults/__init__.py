"""Servers and clients that misbehave in raw bytes, and what must be seen of them."""
