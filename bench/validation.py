"""Cross-validation: what search has to choose is chosen on some questions and tried on others.

Five folds, by the server of the right answer, so that questions about the same tools stay together.
For each fold the weights are chosen on the other four, from a start that was not fitted to
anything, one weight after the other; the fold that took no part says how good they are.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from questions import Question

from divingbell.gateway.search import embeddings
from divingbell.gateway.search.encoders.base import Encoder
from divingbell.gateway.search.entry import IndexEntry, ToolText
from divingbell.gateway.search.index import Index
from divingbell.gateway.search.section import Section
from divingbell.gateway.search.weights import BY_MEANING, BY_WORDS, FIELDS, Weights
from divingbell.tool import Tool

FOLDS = 5
FIRST = 5
SERVERS = 3
DEPTHS = (1, 3, 5, 10)
"""Choosing goes by how often a right tool is within each: smoother than the first five alone."""
NOWHERE = 1000

START = Weights(synonym=0.5, covers_name=2.5, names_server=1.5, suits=1.0, nearness=200.0)
GRID: Mapping[str, Sequence[float]] = {
    "synonym": (0.0, 0.5, 0.7),
    "covers_name": (0.0, 2.5, 5.0),
    "names_server": (0.0, 1.5, 3.0),
    "suits": (0.0, 1.0, 2.5),
    "field name": (2.0, 3.0, 5.0),
    "field lead": (1.0, 2.0),
    "field parameters": (0.5, 1.0),
    "field details": (0.2, 1.0),
}
GRID_BY_MEANING: Mapping[str, Sequence[float]] = {
    "nearness": (100.0, 200.0, 350.0),
    "name share": (0.0, 0.5, 1.0),
    "suits": (0.0, 1.0, 2.5, 5.0, 10.0, 15.0),
    "synonym": (0.0, 0.5),
    "covers_name": (0.0, 2.5),
    "names_server": (0.0, 1.5, 3.0),
}
GRID_OF_SERVERS: Mapping[str, Sequence[float]] = {"server_words": (0.0, 0.5, 1.0)}
"""This one goes by two looks, in which alone servers have a part."""

Fields = tuple[tuple[str, float], ...]
Counts = Callable[[int], bool]
"""Whether the question of that number counts."""
Nearness = Mapping[bytes, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """Everything that is chosen."""

    weights: Weights = START
    fields: Fields = tuple((dict.fromkeys(FIELDS, 1.0) | {"name": 3.0}).items())
    name_share: float = 0.5

    def having(self, name: str, value: float) -> "Choice":
        """The same but for one thing."""
        if name == "name share":
            return dataclasses.replace(self, name_share=value)
        if name.startswith("field "):
            changed = dict(self.fields) | {name.removeprefix("field "): value}
            return dataclasses.replace(self, fields=tuple(changed.items()))
        return dataclasses.replace(self, weights=dataclasses.replace(self.weights, **{name: value}))


AS_SHIPPED = Choice(BY_WORDS, tuple(FIELDS.items()))
AS_SHIPPED_BY_MEANING = Choice(BY_MEANING, tuple(FIELDS.items()), embeddings.NAME_SHARE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went."""

    rank: int
    """Of the best right tool among all, from 0."""
    server_rank: int
    """Of the best server that has a right tool."""
    second_rank: int
    """Of the best right tool within its server, where that was among those named."""

    @property
    def is_right(self) -> bool:
        return self.rank < FIRST

    @property
    def is_right_in_two_looks(self) -> bool:
        return self.second_rank < FIRST


class Remembering:
    """An encoder that reads each text once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[tuple[str, int], Any] = {}
        self.name, self.size = encoder.name, encoder.size
        self.before_query, self.before_tool = encoder.before_query, encoder.before_tool

    def encode(self, texts: Sequence[str], most: int) -> Any:
        missing = [text for text in dict.fromkeys(texts) if (text, most) not in self._known]
        if missing:
            rows = self._encoder.encode(missing, most)
            self._known |= {(text, most): row for text, row in zip(missing, rows, strict=True)}
        import numpy

        return numpy.stack([self._known[text, most] for text in texts])


class Trials:
    """Tries choices on all questions, each once. Without an encoder, by words alone."""

    def __init__(
        self,
        tools: Sequence[Tool],
        questions: Sequence[Question],
        encoder: Encoder | None = None,
    ) -> None:
        self.tools, self.questions = tools, questions
        self._encoder = encoder
        self._entries: dict[Fields, list[IndexEntry]] = {}
        self._ranks: dict[Choice, list[int]] = {}
        self._outcomes: dict[Choice, list[Outcome]] = {}
        self._parts: tuple[Any, Any, Any] | None = None
        self._near: dict[float, list[Nearness]] = {}

    def ranks(self, choice: Choice) -> list[int]:
        """For each question the rank of the best right tool."""
        if choice not in self._ranks:
            index, near = self.index(choice), self.near(choice.name_share)
            self._ranks[choice] = [
                _rank(names(index.search(each.text, max(DEPTHS), near=near[number])), each.answers)
                for number, each in enumerate(self.questions)
            ]
        return self._ranks[choice]

    def outcomes(self, choice: Choice) -> list[Outcome]:
        """For each question how it goes, in one look and in two."""
        if choice not in self._outcomes:
            index, near = self.index(choice), self.near(choice.name_share)
            self._outcomes[choice] = [
                outcome(index, each, near[number]) for number, each in enumerate(self.questions)
            ]
        return self._outcomes[choice]

    def index(self, choice: Choice) -> Index:
        if choice.fields not in self._entries:
            weights = dict(choice.fields)
            self._entries[choice.fields] = [
                IndexEntry(tool, weights=weights) for tool in self.tools
            ]
        by_server: dict[str, list[IndexEntry]] = {}
        for entry in self._entries[choice.fields]:
            by_server.setdefault(entry.tool.server, []).append(entry)
        index = Index(by_words=choice.weights, by_meaning=choice.weights)
        for server, entries in by_server.items():
            index.replace(Section(server, entries))
        return index

    def near(self, name_share: float) -> list[Nearness]:
        """For each question how near the tools are."""
        if self._encoder is None:
            return [{} for _ in self.questions]
        if name_share not in self._near:
            whole, name, asked = self._encoded(self._encoder)
            points = whole + name_share * name
            points /= (points**2).sum(1, keepdims=True) ** 0.5
            keys = [ToolText(tool).key for tool in self.tools]
            self._near[name_share] = [
                dict(zip(keys, row, strict=True)) for row in (asked @ points.T).tolist()
            ]
        return self._near[name_share]

    def _encoded(self, encoder: Encoder) -> tuple[Any, Any, Any]:
        if self._parts is None:
            whole, name = embeddings.encoded(encoder, [ToolText(tool) for tool in self.tools])
            texts = [encoder.before_query + question.text for question in self.questions]
            self._parts = whole, name, encoder.encode(texts, embeddings.MAX_PIECES)
        return self._parts


def outcome(index: Index, question: Question, near: Nearness) -> Outcome:
    """Ask one question in one look, and in two."""
    found = index.search(question.text, max(DEPTHS), near=near)
    named = index.best_servers(question.text, SERVERS, near=near)
    right = {answer.partition(".")[0] for answer in question.answers}
    second = [
        _rank(names(index.search(question.text, FIRST, server, near=near)), question.answers)
        for server in named
        if server in right
    ]
    return Outcome(
        _rank(names(found), question.answers), _rank(named, right), min(second, default=NOWHERE)
    )


def names(found: Sequence[Tool]) -> list[str]:
    return [tool.full_name for tool in found]


def _rank(found: Sequence[str], right: Collection[str]) -> int:
    return next((rank for rank, name in enumerate(found) if name in right), NOWHERE)


def folds(questions: Sequence[Question]) -> list[int]:
    """For each question the number of its fold: by server, and about equal in size."""
    sizes = [0] * FOLDS
    fold_of: dict[str, int] = {}
    counted = Counter(question.home for question in questions)
    for home, count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        smallest = min(range(FOLDS), key=sizes.__getitem__)
        fold_of[home] = smallest
        sizes[smallest] += count
    return [fold_of[question.home] for question in questions]


def chosen(
    trials: Trials, grid: Mapping[str, Sequence[float]], counts: Counts, start: Choice
) -> Choice:
    """Return what does best on the questions that count, one thing after the other."""

    def value(choice: Choice) -> int:
        ranks = [rank for number, rank in enumerate(trials.ranks(choice)) if counts(number)]
        return sum(rank < depth for rank in ranks for depth in DEPTHS)

    return _best_of(grid, value, start)


def _best_of(
    grid: Mapping[str, Sequence[float]], value: Callable[[Choice], int], start: Choice
) -> Choice:
    best = start
    for name, values in grid.items():
        # Of equals the one that was there: a change has to pay.
        best = max([best, *(best.having(name, each) for each in values)], key=value)
    return best


def chosen_by_words(words: Trials) -> Callable[[Counts], Choice]:
    return lambda counts: chosen(words, GRID, counts, Choice())


def chosen_by_meaning(words: Trials, by_meaning: Trials) -> Callable[[Counts], Choice]:
    """The weights of fields are chosen by words, the others with what a query means."""

    def choose(counts: Counts) -> Choice:
        fields = chosen(words, GRID, counts, Choice()).fields
        choice = chosen(by_meaning, GRID_BY_MEANING, counts, Choice(fields=fields))

        def value(choice: Choice) -> int:
            went = enumerate(by_meaning.outcomes(choice))
            return sum(each.is_right_in_two_looks for number, each in went if counts(number))

        return _best_of(GRID_OF_SERVERS, value, choice)

    return choose


def held_out(trials: Trials, choose: Callable[[Counts], Choice]) -> list[Outcome]:
    """Return how each question went with what was chosen on the folds that it is not in."""
    fold_of = folds(trials.questions)
    found: dict[int, Outcome] = {}
    for fold in range(FOLDS):
        held = [number for number, each in enumerate(fold_of) if each == fold]
        went = trials.outcomes(choose(lambda number, held=held: number not in held))
        found |= {number: went[number] for number in held}
    return [found[number] for number in range(len(fold_of))]
