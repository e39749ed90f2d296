"""Divingbell over HTTP: one door for the API, MCP, Jupyter clients and the console."""
