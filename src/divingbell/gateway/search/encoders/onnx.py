"""A sentence model on disk in the form of ONNX, run by onnxruntime: the extra `onnx`.

A folder as Hugging Face has it: `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, and if
they are there `1_Pooling/config.json` (how the points of words become one) and
`config_sentence_transformers.json` (what is put before queries and texts).
"""

import hashlib
import importlib
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError
from divingbell.gateway.search.encoders import arrays

INSTALL = "pip install 'divingbell[onnx]'"
NEEDED = ("numpy", "onnxruntime", "tokenizers")
MODELS = ("model.onnx", "onnx/model.onnx")
TOKENIZER = "tokenizer.json"
POOLING = "1_Pooling/config.json"
PROMPTS = "config_sentence_transformers.json"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
NUMBERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
SENTENCE = "sentence_embedding"
"""The output of models that make one point of a text themselves."""
POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
}
MAX_TEXT = 2000
MAX_SIZE = 8192
MAX_CONFIG = 1 << 20
MAX_TOKENIZER = 1 << 26
_BATCH = 16
_WORKERS = 4
_ERRORS_ONLY = 3
_TINY = 1e-12
_TRIAL = "tool to read a file"


def load(folder: Path) -> "OnnxEncoder":
    """Return the model in a folder, ready and tried.

    Raises:
        ConfigError: something that it needs is missing, or not of the form that is understood.
    """
    return OnnxEncoder(folder, check(folder))


def check(folder: Path) -> Path:
    """Return the path of the model's file, if all that is needed is there. Reads none of it.

    Raises:
        ConfigError: something is missing.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"search_model: {folder} is no folder; name one that has {MODELS[0]} and {TOKENIZER}"
        )
    found = [folder / name for name in MODELS if (folder / name).is_file()]
    if not found:
        raise ConfigError(f"search_model: there is neither {' nor '.join(MODELS)} in {folder}")
    if not (folder / TOKENIZER).is_file():
        raise ConfigError(
            f"search_model: there is no {TOKENIZER} in {folder}; "
            "it is the file beside the model on Hugging Face"
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"search_model needs {' and '.join(missing)}: {INSTALL}")
    return found[0]


class OnnxEncoder:
    """A model with its tokenizer: it turns texts into points at the distance 1."""

    def __init__(self, folder: Path, model: Path) -> None:
        self._numpy: Any = arrays.numpy()
        self._tokenizer = _tokenizer(folder / TOKENIZER)
        self._session = _session(model)
        self._inputs = _inputs(model, self._session)
        self._output, self._pooling = self._chosen_output(folder, model)
        prompts = _config(folder / PROMPTS).get("prompts")
        prompts = prompts if isinstance(prompts, Mapping) else {}
        # A description is a sentence about a tool, and most models compare like with like best.
        self.before_query = str(prompts.get("query", "tool to "))
        self.before_tool = str(prompts.get("document", prompts.get("passage", "")))
        self.size = self._tried_size(model)
        chosen = [self._output, self._pooling, self.before_query, self.before_tool]
        self.name = _digest([model, *_beside(model), folder / TOKENIZER], json.dumps(chosen))[:16]

    def encode(self, texts: Sequence[str], most: int) -> Any:
        """Return a row for each text. What is past its first `most` pieces is not read."""
        pieces = [self._pieces(text, most) for text in texts]
        found = self._numpy.zeros((len(texts), self.size), dtype=self._numpy.float32)
        # Alike in length, so that little is spent on filling up.
        order = sorted(range(len(texts)), key=lambda row: len(pieces[row]))
        for at in range(0, len(order), _BATCH):
            rows = order[at : at + _BATCH]
            found[rows] = self._run([pieces[row] for row in rows])
        return found

    def is_sound(self, points: Any) -> bool:
        """Tell whether these can be points."""
        numpy = self._numpy
        lengths = numpy.linalg.norm(points, axis=1)
        return bool(numpy.isfinite(points).all() and (abs(lengths - 1) < 0.01).all())

    def _pieces(self, text: str, most: int) -> list[int]:
        plain = text[:MAX_TEXT].encode("utf-8", "replace").decode()
        encoding = self._tokenizer.encode(plain)
        pieces: list[int] = encoding.ids
        if len(pieces) <= most:
            return pieces or [0]
        # Models expect the end that their tokenizer has put there, whatever is cut.
        end = pieces[-1:] if encoding.special_tokens_mask[-1] else []
        return [*pieces[: most - len(end)], *end]

    def _run(self, pieces: Sequence[Sequence[int]]) -> Any:
        numpy = self._numpy
        longest = max(map(len, pieces))
        numbers = numpy.zeros((len(pieces), longest), dtype=numpy.int64)
        mask = numpy.zeros((len(pieces), longest), dtype=numpy.int64)
        for row, each in enumerate(pieces):
            numbers[row, : len(each)] = each
            mask[row, : len(each)] = 1
        given = dict(zip(INPUTS, (numbers, mask, numpy.zeros_like(mask)), strict=True))
        fed = {name: given[name].astype(kind) for name, kind in self._inputs.items()}
        (state,) = self._session.run([self._output], fed)
        points = self._pooled(state.astype(numpy.float32), mask)
        return points / numpy.maximum(numpy.linalg.norm(points, axis=1, keepdims=True), _TINY)

    def _pooled(self, state: Any, mask: Any) -> Any:
        if self._pooling == "first":
            return state[:, 0]
        if self._pooling == "last":
            return state[self._numpy.arange(len(state)), mask.sum(1) - 1]
        if self._pooling == "mean":
            return (state * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
        return state

    def _chosen_output(self, folder: Path, model: Path) -> tuple[str, str]:
        """Return the output to read, and how its rows become one: "" where it is one already."""
        outputs = {output.name: output.shape for output in self._session.get_outputs()}
        name = SENTENCE if SENTENCE in outputs else next(iter(outputs))
        if len(outputs[name]) not in (2, 3):
            raise ConfigError(
                f"search_model: {model} gives {name!r} in {len(outputs[name])} dimensions; "
                "a sentence model gives 2 (a text) or 3 (the words of a text)"
            )
        return name, "" if len(outputs[name]) == 2 else _pooling(folder / POOLING)

    def _tried_size(self, model: Path) -> int:
        """Return how many numbers a point has, seen from one."""
        try:
            point = self._run([self._pieces(_TRIAL, len(_TRIAL))])
        except Exception as error:  # of onnxruntime, which has a dozen kinds
            raise ConfigError(f"search_model: {model} can't be run: {_first_line(error)}") from None
        if point.ndim != 2 or point.shape[1] > MAX_SIZE or not self.is_sound(point):
            raise ConfigError(f"search_model: {model} makes no points: is it a sentence model?")
        return int(point.shape[1])


def _session(model: Path) -> Any:
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(_WORKERS, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Its threads would wait for more work by running in circles, beside the event loop.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of onnxruntime, which has a dozen kinds
        raise ConfigError(f"search_model: {model} can't be read: {_first_line(error)}") from None


def _inputs(model: Path, session: Any) -> dict[str, str]:
    """Return the inputs of the model, each with its kind of numbers."""
    found = {given.name: given.type for given in session.get_inputs()}
    unknown = [name for name in found if name not in INPUTS]
    if unknown or INPUTS[0] not in found:
        raise ConfigError(
            f"search_model: {model} takes {', '.join(found) or 'nothing'}; "
            f"what is understood is {', '.join(INPUTS)}"
        )
    if odd := [name for name, kind in found.items() if kind not in NUMBERS]:
        raise ConfigError(f"search_model: {model} takes no whole numbers for {odd[0]}")
    return {name: NUMBERS[kind] for name, kind in found.items()}


def _tokenizer(path: Path) -> Any:
    if path.stat().st_size > MAX_TOKENIZER:
        raise ConfigError(f"search_model: {path} is larger than {MAX_TOKENIZER >> 20} MB")
    try:
        found = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
    except Exception as error:  # it raises nothing more exact
        raise ConfigError(f"search_model: {path} can't be read: {_first_line(error)}") from None
    found.no_truncation()
    found.no_padding()
    return found


def _pooling(path: Path) -> str:
    modes = _config(path)
    asked = [mode for mode, is_on in modes.items() if mode.startswith("pooling_mode_") and is_on]
    known = [POOLINGS[mode] for mode in asked if mode in POOLINGS]
    if not asked:
        return "mean"
    if len(asked) != 1 or not known:
        raise ConfigError(
            f"search_model: {path} asks for {', '.join(asked)}; "
            f"what is understood is one of {', '.join(POOLINGS)}"
        )
    return known[0]


def _config(path: Path) -> dict[str, Any]:
    """Return the settings in a file; none where there is no file."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_CONFIG:
            raise ValueError("it is too large")
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"search_model: {path} can't be read: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"search_model: {path} is no JSON object")
    return found


def _beside(model: Path) -> list[Path]:
    """Files with the numbers of a model that is too large for one: `model.onnx_data`."""
    return sorted(path for path in model.parent.glob(f"{model.name}?*") if path.is_file())


def _digest(files: Sequence[Path], more: str) -> str:
    digest = hashlib.sha256(more.encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
