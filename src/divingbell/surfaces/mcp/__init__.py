"""Divingbell as an MCP server: a few tools, however many servers stand behind it."""
