"""The entry of a tool in the index: its terms, and the text that a sentence model reads.

All of it is text of others: capped before it is read.
"""

import hashlib
import heapq
import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from divingbell.gateway.search.stemming import intent, proper_names, split_name, stems
from divingbell.gateway.search.weights import FIELDS
from divingbell.tool import Tool

MAX_NAME = 200
MAX_DESCRIPTION = 4000
MAX_MODEL_TEXT = 2000
MAX_PURPOSE = 300
MAX_PARAMETERS = 100
MAX_PARAMETER_TEXT = 300
MAX_VALUES = 20
MAX_TEXT = 10_000
"""Characters that are read of one tool, all its places together; no real one that we have seen has
more."""
MAX_TERMS = 300
"""Terms of one tool, those of most weight; of the real ones that we have seen none has as many."""

USUAL_LENGTHS = {
    "name": 4.0,
    "server": 1.5,
    "title": 4.0,
    "lead": 12.0,
    "rest": 60.0,
    "parameters": 10.0,
    "details": 80.0,
    "purpose": 30.0,
}
"""Words that a tool usually has in each place. Fixed, so that a server that comes or goes changes
nothing about the tools of others."""
_LENGTH_MATTERS = 0.4
_SATURATION = 0.8
_LEAST_LEAD = 20
"""Characters that a first sentence has at least: "Note: …" is none."""
_SENTENCE = re.compile(r"[.!?:;]\s|\n\s*\n|\n\s*[-*#•]")


class IndexEntry:
    """A tool with its terms, by which the index finds it. Making one takes most of the time.

    `purpose`: the words of its server about itself.
    """

    __slots__ = ("does", "key", "name", "server", "terms", "tool")

    def __init__(
        self, tool: Tool, purpose: str = "", weights: Mapping[str, float] = FIELDS
    ) -> None:
        self.tool = tool
        self.key = ToolText(tool).key
        server = stems(tool.server[:MAX_NAME])
        # `linear_createIssue` of linear: its server says nothing new about it.
        name = stems(tool.name[:MAX_NAME])
        self.server = frozenset(server)
        self.name = tuple(dict.fromkeys(word for word in name if word not in self.server)) or tuple(
            name
        )
        self.does = _does(tool)
        texts = itertools.chain(
            _stems_by_place(tool, name, server), [("purpose", _purpose(purpose))]
        )
        self.terms = _weighted(texts, weights)


class ToolText:
    """The text of a tool that a sentence model reads, and the hash of it."""

    __slots__ = ("key", "name", "whole")

    def __init__(self, tool: Tool) -> None:
        self.name = f"{split_name(tool.server[:MAX_NAME])} {split_name(tool.name[:MAX_NAME])}"
        self.whole = f"{self.name}. {tool.description[:MAX_MODEL_TEXT]}"
        self.key = hashlib.sha256(self.whole.encode("utf-8", "replace")).digest()


def _end_of_lead(description: str) -> int:
    end = _SENTENCE.search(description, _LEAST_LEAD)
    return end.start() if end else len(description)


def _purpose(instructions: str) -> list[str]:
    return stems(instructions[:MAX_PURPOSE])


class _Reader:
    """Reads a tool's texts until they are too long together."""

    def __init__(self) -> None:
        self._left = MAX_TEXT

    def cut(self, text: str, most: int) -> str:
        """Return as much of a text as may still be read."""
        text = text[: min(most, self._left)]
        self._left -= len(text)
        return text

    def names(self, schema: Mapping[str, Any] | None) -> list[str]:
        """The words in the names of properties."""
        return [word for name, _ in _properties(schema) for word in stems(self.cut(name, MAX_NAME))]

    def details(self, schema: Mapping[str, Any] | None) -> list[str]:
        """The words of the descriptions of properties, and of the values that they can have."""
        return [
            word
            for _, about in _properties(schema)
            for text, most in _about(about)
            for word in stems(self.cut(text, most))
        ]


def _stems_by_place(
    tool: Tool, name: list[str], server: list[str]
) -> Iterator[tuple[str, list[str]]]:
    reader = _Reader()
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(name)]
    joined = [first + second for first, second in itertools.pairwise(name)]
    yield "name", name + pairs + joined
    yield "server", server
    title = (tool.annotations or {}).get("title")
    if isinstance(title, str):
        yield "title", stems(reader.cut(title, MAX_NAME))
    description = reader.cut(tool.description, MAX_DESCRIPTION).strip()
    cut = _end_of_lead(description)
    lead = stems(description[:cut])
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(lead)]
    yield "lead", lead + pairs + proper_names(description[:cut])
    yield "rest", stems(description[cut:]) + proper_names(description[cut:])
    yield "parameters", reader.names(tool.input_schema)
    yield "details", reader.details(tool.input_schema) + reader.names(tool.output_schema)


def _properties(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = (schema or {}).get("properties")
    if isinstance(properties, Mapping):
        for name, about in itertools.islice(properties.items(), MAX_PARAMETERS):
            yield str(name), about if isinstance(about, Mapping) else {}


def _about(about: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """A property's description and the values that it can have, and how much of each is read."""
    text = about.get("description")
    if isinstance(text, str):
        yield text, MAX_PARAMETER_TEXT
    values = about.get("enum")
    if isinstance(values, list):
        for value in values[:MAX_VALUES]:
            if isinstance(value, str):
                yield value, MAX_NAME


def _weighted(
    texts: Iterable[tuple[str, list[str]]], weights: Mapping[str, float]
) -> dict[str, float]:
    """Each term's weight in a tool: BM25 over fields."""
    sums: dict[str, float] = {}
    for field, terms in texts:
        length = len(terms) / USUAL_LENGTHS[field]
        norm = weights[field] / (1 - _LENGTH_MATTERS + _LENGTH_MATTERS * length)
        for term, count in Counter(terms).items():
            sums[term] = sums.get(term, 0.0) + norm * count
    if len(sums) > MAX_TERMS:
        sums = dict(heapq.nlargest(MAX_TERMS, sums.items(), key=operator.itemgetter(1)))
    return {term: (1 + _SATURATION) * value / (_SATURATION + value) for term, value in sums.items()}


def _does(tool: Tool) -> str:
    """Say whether a tool reads or writes, by its hints or the verb in its name."""
    hint = (tool.annotations or {}).get("readOnlyHint")
    if isinstance(hint, bool):
        return "reads" if hint else "writes"
    return intent(split_name(tool.name[:MAX_NAME]))
