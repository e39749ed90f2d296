# mypy: ignore-errors
kept = bytearray(1 << 40)
