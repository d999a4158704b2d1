"""Answers made short inside a Python program: without it, a server or an agent needs a second one.

abridge     functions for agents and any other program: results of tools in, short ones out
middleware  for MCP servers: of the official SDK, and FastMCP
parts       what all sessions of one program share

Both drive a Session as the other transports do, so that rules, views and stored answers are those
of the wrapper, byte for byte.
"""
