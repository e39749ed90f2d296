# mypy: ignore-errors
nested = ValueError("x" * (1 << 20))
for _ in range(200):
    nested = ExceptionGroup("y" * (1 << 16), [nested, nested])
raise nested
