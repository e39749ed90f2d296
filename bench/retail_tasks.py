"""The test tasks of tau-bench (retail) as rows of calls, and what must be known before each.

A task lists the calls that do it. Each becomes a step; a step that is listed twice is one. Steps
that only read come before those that write, as one yes of the person stands between them.
"""

import functools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from retail import REASONS, WRITES, Record, Refused, Shop, data

TRANSFER = "transfer_to_human_agents"
DETAILS = "\n\nWhat else you should know: "


@dataclass(frozen=True)
class Step:
    """One call of a tool."""

    name: str
    arguments: Record

    def __hash__(self) -> int:
        return hash((self.name, json.dumps(self.arguments, sort_keys=True)))

    @property
    def writes(self) -> bool:
        return self.name in WRITES

    @functools.cached_property
    def needs(self) -> tuple[str, ...]:
        """The values that must be known before it can be made."""
        if self.name == TRANSFER:
            return ()  # the model's own words
        if self.name == "calculate":
            return tuple(re.findall(r"\d+(?:\.\d+)?", self.arguments["expression"]))
        return tuple(each for each in _leaves(self.arguments) if each not in ("", *REASONS))

    def is_known(self, shown: str) -> bool:
        """Whether all that it needs stands in a text."""
        return all(stands_in(value, shown) for value in self.needs)


@dataclass(frozen=True)
class Task:
    """What a person wants, and the steps that do it."""

    number: int
    words: str
    """What the person says first."""
    reads: tuple[Step, ...]
    acts: tuple[Step, ...]
    """Steps that write, and the transfer to a human, in their order."""
    results: tuple[Any, ...]
    """Of the steps that read; None where the shop refuses."""
    answers: tuple[str, ...]
    """What the person must be told in the end."""
    state: str
    """How the shop is in the end."""

    @property
    def writes(self) -> bool:
        return any(step.writes for step in self.acts)

    @property
    def only_writes(self) -> bool:
        """Whether it lists no call but those that write."""
        return not self.reads and all(step.writes for step in self.acts)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.reads + self.acts

    @property
    def calls(self) -> int:
        return len(self.steps)


@functools.cache
def tasks() -> tuple[Task, ...]:
    """Return all test tasks."""
    shop = Shop()
    return tuple(_task(shop, number, listed) for number, listed in enumerate(data()["tasks"]))


def single(name: str, question: str) -> tuple[Task, ...]:
    """Return questions that one call of a tool answers, made of the calls of all tasks."""
    shop = Shop()
    steps = dict.fromkeys(step for task in tasks() for step in task.reads if step.name == name)
    listed = [
        {
            "instruction": question.format(**step.arguments),
            "actions": [{"name": name, "kwargs": step.arguments}],
            "outputs": [],
        }
        for step in steps
    ]
    return tuple(_task(shop, number, each) for number, each in enumerate(listed))


def _task(shop: Shop, number: int, listed: Record) -> Task:
    steps: list[Step] = []
    for action in listed["actions"]:
        step = Step(action["name"], action["kwargs"])
        if step not in steps:
            steps.append(step)
    acts = tuple(step for step in steps if step.writes or step.name == TRANSFER)
    reads = tuple(step for step in steps if step not in acts)
    shop.reset()
    results = tuple(_result(shop, step) for step in reads)
    for step in acts:
        _result(shop, step)
    words = listed["instruction"]
    if told := _told(words, dict(zip(reads, results, strict=True)), acts):
        words += DETAILS + ", ".join(told) + "."
    answers = tuple(map(str, listed["outputs"]))
    return Task(number, words, reads, acts, results, answers, shop.state())


def _told(words: str, read: dict[Step, Any], acts: Sequence[Step]) -> list[str]:
    """Return the values that the person has to tell, because no step shows them in time."""
    shown = words
    told: list[str] = []
    left = [*read, *acts]
    while left:
        ready = [step for step in left if step.is_known(shown)]
        shown = " ".join([shown, *(json.dumps(read.get(step)) for step in ready)])
        if not ready:
            missing = [value for value in left[0].needs if not stands_in(value, shown)]
            told += dict.fromkeys(missing)
            shown = " ".join([shown, *missing])
        left = [step for step in left if step not in ready]
    return told


def _result(shop: Shop, step: Step) -> Any:
    try:
        # A copy: what is written later must not be in it.
        return json.loads(json.dumps(shop.call(step.name, step.arguments)))
    except Refused:
        return None


def stands_in(value: str, text: str) -> bool:
    """Whether a value is in a text, as people write it."""
    return value.lower().lstrip("#") in text.lower()


def holds_any(record: Any, values: Sequence[str]) -> bool:
    """Whether a result has one of the values in it."""
    text = json.dumps(record)
    return any(stands_in(value, text) for value in values)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield str(value)
