"""The one gateway of several replicas: its process, and how replicas reach it."""
