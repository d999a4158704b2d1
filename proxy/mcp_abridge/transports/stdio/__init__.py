"""The wrapper around a child process: two pipes on each side, one thread for each direction."""
