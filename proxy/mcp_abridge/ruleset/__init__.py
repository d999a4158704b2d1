"""Rules: the model, reading YAML, choosing and watching files, guards, known clients."""
