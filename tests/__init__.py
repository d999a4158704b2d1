"""Mirrors the package, one test file per module; test_architecture.py names those of the whole."""
