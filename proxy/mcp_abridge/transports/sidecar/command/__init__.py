"""Routes of the sidecar to a command, with one child process per session."""
