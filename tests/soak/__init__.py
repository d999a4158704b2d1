"""A long run over real processes, in which the proxy must not grow: see `python -m tests.soak`."""
