"""The session of one client with one server: how each message is handled."""
