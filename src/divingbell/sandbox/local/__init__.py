"""The local backend: Linux namespaces, no root, no Docker."""
