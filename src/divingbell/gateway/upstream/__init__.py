"""Upstream servers: their processes and addresses, and the connections to them."""
