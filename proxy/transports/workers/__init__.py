"""Where long work is done: worker processes, and threads."""
