"""The official conformance suite, run directly and through the proxy: the same checks must pass."""
