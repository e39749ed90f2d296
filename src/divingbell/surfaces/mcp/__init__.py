"""Divingbell as an MCP server: a few tools, however many upstream servers there are."""
