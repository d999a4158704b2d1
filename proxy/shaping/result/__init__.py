"""A CallToolResult: its document found in it, and written back with all else unchanged."""
