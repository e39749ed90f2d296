"""What this machine can do, looked at and tried, and what to do about the rest."""
