"""Lazily decoded JSON: messages and their values, paths, sizes, expressions bounded by fuel."""
