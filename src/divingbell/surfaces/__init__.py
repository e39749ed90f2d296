"""Surfaces: the command, and the MCP server. They translate; they decide nothing."""
