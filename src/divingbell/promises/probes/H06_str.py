# mypy: ignore-errors
class Meta(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class Hostile(Exception, metaclass=Meta):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __getattribute__(self, name: str):
        raise RuntimeError("nothing at all")


raise Hostile
