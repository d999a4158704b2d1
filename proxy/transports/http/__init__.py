"""The sidecar: MCP over Streamable HTTP for clients, and servers that are asked over it."""
