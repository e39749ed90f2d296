# mypy: ignore-errors
with open("big", "wb") as file:
    for power in range(40, 20, -1):
        try:
            file.truncate(1 << power)
        except OSError:
            continue
        break
print(power)
