"""Runs the tests that are written in rule files, and plays single calls for `explain`."""
