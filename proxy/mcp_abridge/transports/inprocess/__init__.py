"""Answers made short inside a Python program: without it, a server or an agent needs a second one.

A Session is driven as by the other transports, so that a client gets the wrapper's bytes.
"""
