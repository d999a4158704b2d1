"""Answers made short inside a Python program: without it, servers and agents need a second one."""
