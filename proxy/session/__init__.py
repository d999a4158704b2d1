"""One client and one server: what becomes of each message that passes between them."""
