"""Personal data and secrets in texts: where they stand, and of which kind they are."""
