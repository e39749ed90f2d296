"""The gvisor backend: a kernel of its own for each session, by runsc, without a daemon."""
