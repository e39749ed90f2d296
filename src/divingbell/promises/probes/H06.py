# mypy: ignore-errors
error = ValueError("x" * (20 << 20))
error.__cause__ = error
raise error
