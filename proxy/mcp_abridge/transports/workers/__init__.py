"""Worker processes and threads for long work."""
