"""A client of remote servers over HTTP, for a client that uses stdio."""
