# mypy: ignore-errors
power = 10**9
x = 10**power
