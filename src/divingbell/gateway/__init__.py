"""The door: real MCP servers behind it, hostile code in front of it."""
