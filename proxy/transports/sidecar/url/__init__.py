"""Routes of the sidecar before a URL."""
