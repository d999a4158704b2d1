"""The wrapper before a command: two pipes on each side, one thread for each direction."""
