"""Backends, the walls around the code: one interface, one registry, one room for each."""
