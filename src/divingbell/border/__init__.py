"""The border between the host and a model."""
