"""The file of points: what a sentence model made of texts, by the hash of each text."""

import contextlib
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from divingbell.gateway.search.encoders import arrays
from divingbell.host import private_file

MAX_KEPT = 20_000
"""Points in one file: 16 MB with the model of the extra."""
HASH = 32
"""Bytes of the hash before each point."""
_TINY = 1e-12


class Points:
    """The points of one model, of so many numbers each, in two bytes a number."""

    def __init__(self, file: Path, size: int) -> None:
        self._file = file
        self._size = size
        self._record = HASH + 2 * size
        self._numpy = arrays.numpy()

    def read(self) -> dict[bytes, bytes]:
        """Return what is kept; nothing of a file that is damaged."""
        data = private_file.read(self._file, MAX_KEPT * self._record)
        if data is None or len(data) % self._record:
            return {}
        found = {
            data[at : at + HASH]: data[at + HASH : at + self._record]
            for at in range(0, len(data), self._record)
        }
        return found if self._is_sound(list(found.values())) else {}

    def write(self, kept: Mapping[bytes, bytes], used: Container[bytes]) -> None:
        """Keep points for the next time, those in use before others. A full disk is no error."""
        order = sorted(kept, key=lambda digest: digest not in used)[:MAX_KEPT]
        with contextlib.suppress(OSError):
            private_file.write(self._file, b"".join(digest + kept[digest] for digest in order))

    def rounded(self, points: Any) -> list[bytes]:
        """Return points as they are kept: at the distance 1, two bytes a number."""
        lengths = self._numpy.linalg.norm(points, axis=1, keepdims=True)
        points = points / self._numpy.maximum(lengths, _TINY)
        return [point.tobytes() for point in points.astype("<f2")]

    def matrix(self, points: Sequence[bytes]) -> Any:
        """Return kept points as rows."""
        joined = self._numpy.frombuffer(b"".join(points), "<f2").reshape(-1, self._size)
        return joined.astype(self._numpy.float32)

    def _is_sound(self, points: Sequence[bytes]) -> bool:
        """Tell whether these can be points: a damaged file could hold infinities."""
        matrix = self.matrix(points)
        if not self._numpy.isfinite(matrix).all():
            return False
        # A text may have nothing to a model: then its point is at 0, far from all.
        lengths = self._numpy.linalg.norm(matrix, axis=1)
        return bool(((abs(lengths - 1) < 0.01) | (lengths == 0)).all())
