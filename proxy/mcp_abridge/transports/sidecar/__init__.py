"""The HTTP sidecar: routes before URLs and commands, with access, metrics and reload."""
