"""The state of this machine, looked at and tried, and what to do about what it lacks."""
