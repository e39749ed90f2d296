# mypy: ignore-errors
for number in range(10_000_000):
    with open(f"/tmp/{number}", "w"):
        pass
print("UNSAFE ten million files")
