"""A client of remote servers over HTTP, for a client that uses stdio."""

# Logs in if a server wants that; of the version that was tested, since npx would run whatever
# is newest with the user's logins.
LOGIN = ("npx", "-y", "mcp-remote@0.15.1")
