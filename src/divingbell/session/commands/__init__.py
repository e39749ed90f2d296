"""Commands of a session: programs that run beside its cells, behind the same walls."""
