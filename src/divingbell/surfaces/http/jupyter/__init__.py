"""Jupyter clients: kernelspecs, kernels and their messages. A kernel is a session."""
