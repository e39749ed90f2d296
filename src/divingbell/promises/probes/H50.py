# mypy: ignore-errors
print("x" * 400_000 + "\ra" * 200_000)
