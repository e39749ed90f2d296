# mypy: ignore-errors
class Raising:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


Raising()
