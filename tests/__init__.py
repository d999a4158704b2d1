"""Mirrors the package, one test file per module; test_architecture.py names the tests of the whole."""
