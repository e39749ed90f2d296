"""Connections to upstream servers: made, kept, watched, and remade when they break."""
