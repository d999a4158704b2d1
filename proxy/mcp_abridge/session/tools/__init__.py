"""Entries of tools/list: the facts in them, and how rules edit them."""
