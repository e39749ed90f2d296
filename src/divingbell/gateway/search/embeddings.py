"""Embeddings of tools and queries, to search by meaning: the optional `semantic` extra.

A small sentence model (`encoders`) turns each tool and each query into a point; near is alike.
Points of tools are kept on disk under the hash of what they were made from, so a
tool that has changed is a new one. Measured: making one takes a core about twenty milliseconds,
hence a thread:

    embeddings = await asyncio.to_thread(load)
    index = Index(tools, embeddings=embeddings)
    await asyncio.to_thread(embeddings.prepare, tools)

Until most tools are prepared, all are found by their words alone.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from divingbell.gateway.search.encoders.base import Encoder
from divingbell.gateway.search.entry import ToolText
from divingbell.gateway.search.points import Points
from divingbell.host.profile import home
from divingbell.tool import Tool

MAX_QUERY = 2000
MAX_PIECES = 64
"""Pieces of words that the model reads of a description, or of a query: two sentences or three.
Measured: with half of it fewer tools are found, with twice as much no more."""
MAX_NAME_PIECES = 32
NAME_SHARE = 0.5
"""Weight of the name on its own, beside the whole: descriptions are often about much else."""
PORTION = 128
"""Tools that are prepared in a row, in a few seconds."""
MAX_REMEMBERED = 64
"""Queries whose points are kept: the second look often asks what the first did."""


class Embeddings:
    """The points of tools, and how near each is to a query.

    `prepare` may run in a thread beside `nearness`.
    """

    def __init__(self, encoder: Encoder, cache: Path) -> None:
        self._encoder = encoder
        self._points = Points(cache / f"{encoder.name}.points", encoder.size)
        self._known: tuple[Mapping[bytes, int], Any] = ({}, None)
        self._of_query = functools.lru_cache(MAX_REMEMBERED)(self._encoded)

    def prepare(self, tools: Iterable[Tool], is_stale: Callable[[], bool] = lambda: False) -> None:
        """Have a point for each of these tools, and for no others. Takes its time.

        Between portions it asks whether that is still wanted; what was made till then is kept.
        """
        texts = {text.key: text for text in map(ToolText, tools)}
        kept = self._points.read()
        missing = [text for key, text in texts.items() if key not in kept]
        for at in range(0, len(missing), PORTION):
            if is_stale():
                return
            portion = missing[at : at + PORTION]
            whole, name = encoded(self._encoder, portion)
            made = self._points.rounded(whole + NAME_SHARE * name)
            kept |= {text.key: point for text, point in zip(portion, made, strict=True)}
            self._points.write(kept, texts)
        matrix = self._points.matrix([kept[key] for key in texts])
        self._known = ({key: row for row, key in enumerate(texts)}, matrix)

    def nearness(self, phrasings: Sequence[str]) -> Mapping[bytes, float]:
        """Return how near each prepared tool is (1 is the same, 0 has nothing to do with it).

        Of several phrasings of a query it is the mean.
        """
        rows, matrix = self._known
        asked = [phrasing for phrasing in phrasings if phrasing.strip()]
        if not rows or not asked:
            return {}
        near = (matrix @ sum(map(self._of_query, asked))) / len(asked)
        return dict(zip(rows, near.tolist(), strict=True))

    def _encoded(self, query: str) -> Any:
        return self._encoder.encode([self._encoder.before_query + query[:MAX_QUERY]], MAX_PIECES)[0]


def encoded(encoder: Encoder, texts: Sequence[ToolText]) -> tuple[Any, Any]:
    """Return the points of all that tools say of themselves, and those of their names alone."""
    before = encoder.before_tool
    return (
        encoder.encode([before + text.whole for text in texts], MAX_PIECES),
        encoder.encode([before + text.name for text in texts], MAX_NAME_PIECES),
    )


def load(cache: Path | None = None, model: Path | None = None) -> Embeddings:
    """Return embeddings, with their model. Reads a hundred megabytes: call it in a thread.

    Args:
        cache: the folder for points. Default: `meaning` in Divingbell's own cache folder.
        model: the folder of a model of your own; else the one of the extra.

    Raises:
        ConfigError: what it needs is not installed, or is not what it should be.
    """
    from divingbell.gateway.search.encoders import minilm, onnx

    encoder: Encoder = minilm.load() if model is None else onnx.load(model)
    return Embeddings(encoder, cache or home() / "meaning")
