"""Texts that matplotlib draws into an image, told to the host beside it.

The host can't read an image. Where it has to know what a model would read there, it looks at these.
They are what this process says, and no more than that: code can draw without telling.
"""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

KIND = "application/vnd.divingbell.texts"
"""The type of the part of a display that has them: texts in UTF-8, with a zero between two."""
BETWEEN = "\0"
MOST_TEXTS = 5000
MOST_BYTES = 1 << 16
"""Of all texts of one image. The ticks of twenty axes have some 5,000 bytes."""


class Picture(bytes):
    """An image, and the texts in it as the host gets them; None where they are not known."""

    texts: bytes | None = None


def picture_of(png: bytes, texts: list[str] | None) -> Picture:
    """Return an image with its texts, unless these are not known or too many."""
    picture = Picture(png)
    if texts is not None and len(texts) <= MOST_TEXTS:
        raw = BETWEEN.join(texts).encode("utf-8", "backslashreplace")
        picture.texts = raw if len(raw) <= MOST_BYTES else None
    return picture


@contextlib.contextmanager
def noted() -> Iterator[list[str]]:
    """Note what is drawn as text meanwhile: titles, ticks, legends, cells of tables and others."""
    texts: dict[str, None] = {}
    found: list[str] = []
    text_class = importlib.import_module("matplotlib.text").Text
    draw = text_class.draw

    def draw_and_note(self: Any, *arguments: Any, **options: Any) -> Any:
        if len(texts) <= MOST_TEXTS:
            texts[str(self.get_text()).replace(BETWEEN, " ")] = None
        return draw(self, *arguments, **options)

    text_class.draw = draw_and_note
    try:
        yield found
    finally:
        text_class.draw = draw
        found += texts


def has_photographs(figure: Any) -> bool:
    """Whether there is an image in it whose pixels have colours of their own: what they show is not
    known. Numbers that a chart has drawn as colours are none."""
    image_class = importlib.import_module("matplotlib.image")._ImageBase
    arrays = (image.get_array() for image in figure.findobj(image_class))
    return any(array is not None and array.ndim > 2 for array in arrays)
