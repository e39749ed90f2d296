# mypy: ignore-errors
power = 40
text = "a" * 2**power
