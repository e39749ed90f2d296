# mypy: ignore-errors
class Big:
    def __repr__(self) -> str:
        return "x" * (1 << 24)


Big()
