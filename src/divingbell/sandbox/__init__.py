"""The walls around the code: one interface, one module for each backend."""
