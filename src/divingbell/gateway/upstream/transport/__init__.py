"""Transports: connections to a server that is a process of ours, or that has an address."""
