"""Sentence models in the form of ONNX, made here: a tiny one, and that of the extra converted."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "file", "read", "weather", "hot", "refund", "money")
"""The tiny model knows these; words of one kind lie near to each other."""
KINDS = ((0,), (1, 2, 3), (4, 5), (6, 7), (8, 9))


class Graph:
    """Writes a model, node by node."""

    def __init__(self) -> None:
        self.onnx = pytest.importorskip("onnx")
        self.numpy = pytest.importorskip("numpy")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"constant{len(self.constants)}"
        array = self.numpy.ascontiguousarray(value)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, *numbers: int) -> str:
        return self.constant(self.numpy.array(numbers, self.numpy.int64))

    def number(self, value: float) -> str:
        return self.constant(self.numpy.array(value, self.numpy.float32))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"value{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def save(
        self, path: Path, inputs: Sequence[str], state: str, shape: Sequence[Any], output: str
    ) -> None:
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        self.nodes.append(helper.make_node("Identity", [state], [output]))
        graph = helper.make_graph(
            self.nodes,
            "model",
            [helper.make_tensor_value_info(name, kinds.INT64, ["b", "l"]) for name in inputs],
            [helper.make_tensor_value_info(output, kinds.FLOAT, shape)],
            self.constants,
        )
        versions = [helper.make_opsetid("", 17)]
        path.parent.mkdir(parents=True, exist_ok=True)
        self.onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=9), path)


def tiny(
    folder: Path,
    file: str = "model.onnx",
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    is_pooled: bool = False,
    words: int = len(WORDS),
    scale: float = 1.0,
) -> Path:
    """Make a model that knows ten words, or as many of them as it is told, with its tokenizer."""
    graph = Graph()
    table = graph.numpy.zeros((len(WORDS), len(KINDS)), graph.numpy.float32)
    for kind, members in enumerate(KINDS):
        for number in members:
            table[number, kind] = scale * (1 + number / 10)
    state = graph.add("Gather", graph.constant(table[:words]), inputs[0], axis=0)
    shape: list[Any] = ["b", "l", "n"]
    output = "last_hidden_state"
    if is_pooled:
        state = graph.add("ReduceMax", state, axes=[1], keepdims=0)
        shape, output = ["b", "n"], "sentence_embedding"
    graph.save(folder / file, inputs, state, shape, output)
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.save(str(folder / "tokenizer.json"))
    return folder


def converted(carrier: Path, folder: Path) -> Path:
    """Make ONNX of the files of all-MiniLM-L6-v2, as exporters do."""
    graph, weights = Graph(), _weights(carrier / "model.safetensors")
    size, heads, layers = 384, 12, 6

    def dense(state: str, name: str) -> str:
        product = graph.add("MatMul", state, graph.constant(weights[name + ".weight"].T))
        return graph.add("Add", product, graph.constant(weights[name + ".bias"]))

    def norm(state: str, name: str) -> str:
        of_it = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return graph.add("LayerNormalization", state, *of_it, axis=-1, epsilon=1e-12)

    def heads_of(state: str) -> str:
        split = graph.add("Reshape", state, graph.whole(0, 0, heads, size // heads))
        return graph.add("Transpose", split, perm=[0, 2, 1, 3])

    def embedded(name: str, numbers: str) -> str:
        table = graph.constant(weights[f"embeddings.{name}_embeddings.weight"])
        return graph.add("Gather", table, numbers, axis=0)

    length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.whole(1), axis=0)
    places = graph.constant(weights["embeddings.position_embeddings.weight"])
    places = graph.add("Slice", places, graph.whole(0), length, graph.whole(0))
    state = graph.add("Add", embedded("word", "input_ids"), places)
    state = graph.add("Add", state, embedded("token_type", "token_type_ids"))
    state = norm(state, "embeddings.LayerNorm")
    mask = graph.add("Cast", "attention_mask", to=graph.onnx.TensorProto.FLOAT)
    mask = graph.add("Mul", graph.add("Sub", mask, graph.number(1)), graph.number(1e9))
    mask = graph.add("Unsqueeze", mask, graph.whole(1, 2))
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        names = (f"{at}attention.self.{name}" for name in ("query", "key", "value"))
        queries, keys, values = (heads_of(dense(state, name)) for name in names)
        scores = graph.add("MatMul", queries, graph.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = graph.add("Mul", scores, graph.number(1 / math.sqrt(size / heads)))
        scores = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)
        seen = graph.add("Transpose", graph.add("MatMul", scores, values), perm=[0, 2, 1, 3])
        seen = graph.add("Reshape", seen, graph.whole(0, 0, size))
        seen = dense(seen, at + "attention.output.dense")
        state = norm(graph.add("Add", state, seen), at + "attention.output.LayerNorm")
        inner = dense(state, at + "intermediate.dense")
        bend = graph.add("Erf", graph.add("Mul", inner, graph.number(1 / math.sqrt(2))))
        bend = graph.add("Mul", inner, graph.add("Add", bend, graph.number(1)))
        bend = dense(graph.add("Mul", bend, graph.number(0.5)), at + "output.dense")
        state = norm(graph.add("Add", state, bend), at + "output.LayerNorm")
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    graph.save(folder / "onnx" / "model.onnx", inputs, state, ["b", "l", size], "last_hidden_state")
    (folder / "tokenizer.json").write_bytes((carrier / "tokenizer.json").read_bytes())
    return folder


def _weights(path: Path) -> dict[str, Any]:
    numpy = pytest.importorskip("numpy")
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    return {
        name: numpy.frombuffer(
            data,
            "<f4",
            count=(about["data_offsets"][1] - about["data_offsets"][0]) // 4,
            offset=start + about["data_offsets"][0],
        ).reshape(about["shape"])
        for name, about in json.loads(data[8:start]).items()
        if about.get("dtype") == "F32"
    }
