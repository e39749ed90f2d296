# mypy: ignore-errors
while True:
    pass
