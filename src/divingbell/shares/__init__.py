"""Shares of the host: the time and memory that one session may take, beside the others."""
