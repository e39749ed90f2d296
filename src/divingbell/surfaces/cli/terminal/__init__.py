"""The terminal: what is read from it, and what is written to it."""
