"""Sessions: opened, run, streamed, copied and ended."""
