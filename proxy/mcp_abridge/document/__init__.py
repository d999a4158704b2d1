"""Lazily decoded JSON: messages and their values, paths, sizes; fuel, which bounds all work."""
