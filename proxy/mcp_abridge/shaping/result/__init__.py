"""A CallToolResult: its document located, and written back with all else unchanged."""
