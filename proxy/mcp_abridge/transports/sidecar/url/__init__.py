"""Routes of the sidecar to a URL."""
