"""Entries of tools/list: what they declare, and how a rule edits them."""
