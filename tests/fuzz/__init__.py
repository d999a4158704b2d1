"""Fuzzers of the pure core: messages, rules over documents, and sessions; see `__main__`."""
