"""Routes of the sidecar before a command, which gets a process per session."""
