"""A sentence model of one's own, with real models and the real onnxruntime where they are there."""

import importlib.util
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import ConfigError
from divingbell.gateway.search import embeddings
from divingbell.gateway.search.encoders import minilm, onnx
from divingbell.gateway.search.index import Index
from tests import onnx_models
from tests.gateway.search.test_embeddings import encoder
from tests.gateway.search.test_index import found, make

SMALL = [
    make("disk", "open_it", "Read a file."),
    make("sky", "tell", "The weather: how hot it is."),
    make("shop", "give_back", "Refund the money."),
]


@pytest.fixture(autouse=True)
def _is_installed() -> None:
    missing = [name for name in (*onnx.NEEDED, "onnx") if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI"):
        pytest.fail(f"CI has no {missing}")
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: {onnx.INSTALL}")


def test_tools_are_found_by_a_model_of_ones_own(tmp_path: Path) -> None:
    model = onnx_models.tiny(tmp_path / "model")
    known = embeddings.load(tmp_path / "cache", model)
    known.prepare(SMALL)
    near = known.nearness(["money"])
    third = list(Index(SMALL, known)._tools.values())[2]
    assert max(near, key=near.__getitem__) == third.key
    assert found(Index(SMALL, known), "hot", 1) == ["sky.tell"]
    again = embeddings.load(tmp_path / "cache", model)
    again.prepare(SMALL)
    assert again.nearness(["money"]) == near


@pytest.mark.parametrize("file", onnx.MODELS)
@pytest.mark.parametrize(
    "inputs", [("input_ids",), ("input_ids", "attention_mask"), onnx.INPUTS], ids=len
)
@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_usual_forms_of_models_are_understood(
    tmp_path: Path, file: str, inputs: tuple[str, ...], is_pooled: bool
) -> None:
    encoder = onnx.load(onnx_models.tiny(tmp_path, file, inputs, is_pooled))
    points = encoder.encode(["read file", "weather", "hot hot hot", ""], 8)
    assert encoder.is_sound(points)
    assert (points[1] @ points[2]) > (points[1] @ points[0])


def test_it_gives_the_points_that_the_model_of_the_extra_gives(tmp_path: Path) -> None:
    ours, carrier = encoder(), minilm.model_folder()
    assert carrier is not None
    theirs = onnx.load(onnx_models.converted(carrier, tmp_path))
    texts = ["tool to refund a payment", "List the files of a folder. " * 40, "", "naïve – ½ 北京"]
    assert theirs.size == ours.size
    for most in (8, 64):
        alike = (ours.encode(texts, most) * theirs.encode(texts, most)).sum(1)
        assert (alike > 0.999).all(), alike


def test_pooling_and_prompts_are_those_of_the_folder(tmp_path: Path) -> None:
    folder = onnx_models.tiny(tmp_path)
    plain = onnx.load(folder)
    assert (plain.before_query, plain.before_tool) == ("tool to ", "")
    (folder / "1_Pooling").mkdir()
    (folder / onnx.POOLING).write_text(json.dumps({"pooling_mode_cls_token": True}))
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (folder / onnx.PROMPTS).write_text(json.dumps(prompts))
    other = onnx.load(folder)
    assert (other.before_query, other.before_tool) == ("query: ", "passage: ")
    first, second = other.encode(["weather", "money"], 8)
    assert (first == second).all()  # both begin with [CLS]
    assert other.name != plain.name, "the points of the one would be taken for those of the other"


@pytest.mark.parametrize(
    "text", ["", "\x00", "\ud800", "🙂" * 5000, "read " * 10**5, "x" * 10**6, "﷽" * 5000]
)
def test_any_text_has_a_point(tmp_path: Path, text: str) -> None:
    encoder = onnx.load(onnx_models.tiny(tmp_path))
    assert encoder.is_sound(encoder.encode([text, "read"], 16))


def test_it_is_read_by_several_threads_at_once(tmp_path: Path) -> None:
    encoder = onnx.load(onnx_models.tiny(tmp_path))
    expected = {most: encoder.encode(["read file money"] * 40, most) for most in (3, 16)}
    wrong: list[int] = []

    def run(most: int) -> None:
        for _ in range(50):
            if (encoder.encode(["read file money"] * 40, most) != expected[most]).any():
                wrong.append(most)

    threads = [threading.Thread(target=run, args=(most,)) for most in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def _without(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).unlink()


def _with(name: str, content: bytes) -> Callable[[Path], Any]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return write


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (_without("model.onnx"), "neither model.onnx nor onnx/model.onnx"),
        (_without("tokenizer.json"), "no tokenizer.json"),
        (_with("model.onnx", b"no model"), "model.onnx can't be read"),
        (_with("tokenizer.json", b"{}"), "tokenizer.json can't be read"),
        (_with("1_Pooling/config.json", b"[]"), "is no JSON object"),
        (_with("1_Pooling/config.json", b"{"), "config.json can't be read"),
        (
            _with("1_Pooling/config.json", b'{"pooling_mode_max_tokens": true}'),
            "pooling_mode_max_tokens; what is understood is one of pooling_mode_mean_tokens",
        ),
        (
            lambda folder: onnx_models.tiny(folder, inputs=("pixel_values",)),
            "takes pixel_values; what is understood is input_ids",
        ),
        (
            lambda folder: onnx_models.tiny(folder, words=3),
            "model.onnx can't be run",
        ),
        (
            lambda folder: onnx_models.tiny(folder, scale=0.0),
            "makes no points: is it a sentence model?",
        ),
    ],
)
def test_what_is_missing_or_of_another_form_is_said(
    tmp_path: Path, break_it: Callable[[Path], Any], words: str
) -> None:
    break_it(onnx_models.tiny(tmp_path))
    with pytest.raises(ConfigError, match=r"^search_model: ") as refused:
        onnx.load(tmp_path)
    assert words in str(refused.value)


def test_a_folder_that_is_none_and_packages_that_are_missing_are_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"is no folder; name one that has model\.onnx"):
        onnx.check(tmp_path / "nowhere")
    onnx_models.tiny(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"onnxruntime.*pip install 'divingbell\[onnx\]'"):
        onnx.check(tmp_path)
