"""The docker backend: one container a session, by runc or by gVisor's runsc."""
