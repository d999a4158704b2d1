"""Fuzzers of the pure core: rules over documents, and sessions; see `__main__`."""
