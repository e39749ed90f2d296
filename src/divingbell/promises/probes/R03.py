# mypy: ignore-errors
kept = []
while True:
    kept.append(bytearray(b"x") * (8 << 20))
