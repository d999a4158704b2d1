"""Run the tests that are written in rule files, and replay single calls for `explain`."""
