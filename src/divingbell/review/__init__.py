"""The review: what code will try to do, read off it before it runs."""
