"""Fuzzers of the pure core: framing, rules over documents, and sessions; see `__main__`."""
