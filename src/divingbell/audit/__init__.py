"""The audit log: who ran and called what, in files that can be proven."""
