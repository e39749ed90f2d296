"""Shares of the host: what one session may take of its time and memory, beside the others."""
