"""Finding the right tool: how often it is among the first five, and how long that takes.

    ./dev bench search [--quick] [--model FOLDER] [--lost]

The tools of more than fifty real servers; questions whose right answers are known. What is fitted
is chosen on some questions and counted on others (validation.py). Beside ours, in the same run:
SQLite's FTS5 with its own BM25 over name and description. `--model` adds a sentence model of your
own (model.onnx and tokenizer.json), `--lost` lists the questions whose tool is not found.
"""

import argparse
import asyncio
import os
import re
import sqlite3
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import table
from questions import SETS, Question, phrased, questions, tools
from validation import (
    AS_SHIPPED,
    AS_SHIPPED_BY_MEANING,
    Choice,
    Counts,
    Outcome,
    Remembering,
    Trials,
    chosen_by_meaning,
    chosen_by_words,
    held_out,
    names,
    outcome,
)

from divingbell.errors import ConfigError
from divingbell.gateway.catalog.catalog import MAX_EXAMPLES
from divingbell.gateway.catalog.descriptions import described
from divingbell.gateway.search.embeddings import Embeddings
from divingbell.gateway.search.encoders import minilm, onnx
from divingbell.gateway.search.encoders.base import Encoder
from divingbell.gateway.search.index import Index
from divingbell.journal import tokens
from divingbell.tool import Tool

FIRST = 5
ROUNDS = 3
BY_WORDS = 0.65
BY_MEANING = 0.75
TWO_LOOKS = 0.90
QUICK = 10.0
FEWER = 8
"""With --quick, each eighth question."""
BUILT = 1.0
RIGHT = "a right tool in the first five"
TWICE = "in two looks: three servers, then five tools of one"
COUNTED = "tokens of an answer"
_MB = 1 << 20

Search = Callable[[str], Sequence[str]]


def plain_bm25(known: Sequence[Tool]) -> Search:
    """The peer: FTS5 as everybody would set it up."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE tools USING fts5(full UNINDEXED, name, description)")
    database.executemany(
        "INSERT INTO tools VALUES (?, ?, ?)",
        ((tool.full_name, f"{tool.server} {tool.name}", tool.description) for tool in known),
    )

    def search(query: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        found = database.execute(
            "SELECT full FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?", (words, FIRST)
        )
        return [name for (name,) in found]

    return search


def share_of(
    measure: str, subject: str, asked: Sequence[Question], is_right: Sequence[bool], target: float
) -> table.Row:
    """How many of the questions went well: of all, and of each set."""
    share = statistics.mean(is_right)
    sets = []
    for name in SETS:
        of_it = [right for right, each in zip(is_right, asked, strict=True) if each.source == name]
        if of_it and len(of_it) < len(asked):
            sets.append(f"{name}: {statistics.mean(of_it):.1%}")
    met = "" if not target else f"≥ {target:.0%}: {'met' if share >= target else 'NOT met'}"
    return table.Row(
        measure, subject, f"{share:.1%}", ratio="; ".join(sets), target=met, runs=str(len(asked))
    )


def validated(
    subject: str,
    trials: Trials,
    choose: Callable[[Counts], Choice],
    shipped: Choice,
    targets: tuple[float, float],
) -> tuple[list[table.Row], list[Outcome]]:
    """Cross-validation, and beside it what the weights give that were chosen on all questions."""
    asked = trials.questions
    held = held_out(trials, choose)
    fitted = trials.outcomes(shipped)
    at_once, in_two = targets
    rows = [
        share_of(RIGHT, f"{subject}, held out", asked, [o.is_right for o in held], at_once),
        share_of(RIGHT, f"{subject}, as shipped", asked, [o.is_right for o in fitted], 0.0),
        share_of(
            TWICE, f"{subject}, held out", asked, [o.is_right_in_two_looks for o in held], in_two
        ),
        share_of(
            TWICE, f"{subject}, as shipped", asked, [o.is_right_in_two_looks for o in fitted], 0.0
        ),
    ]
    every = choose(lambda _: True)
    if trials.outcomes(every) != trials.outcomes(shipped):
        print(f"{subject}: chosen on all questions would be {every}")
    return rows, held


def in_several_phrasings(trials: Trials, encoder: Encoder | None) -> list[table.Row]:
    """Questions with phrasings of a model that knew what tools of this kind are called."""
    name = "by words" if encoder is None else "by words and meaning"
    index = Index(trials.tools)
    if encoder is not None:
        index.embeddings = Embeddings(encoder, Path(os.devnull))
        index.embeddings.prepare(trials.tools)
    asked = phrased()
    went = [outcome(index, each, index.nearness(each.text)) for each in asked]
    subject = f"{name}, three phrasings: an upper bound"
    return [
        share_of(RIGHT, subject, asked, [each.is_right for each in went], 0.0),
        share_of(TWICE, subject, asked, [each.is_right_in_two_looks for each in went], 0.0),
    ]


def timed(subject: str, search: Search, asked: Sequence[Question], quick: float) -> table.Row:
    taken = []
    for number in range(ROUNDS + 1):
        for question in asked:
            started = time.perf_counter()
            search(question.text)
            if number:  # the first round is not counted
                taken.append(time.perf_counter() - started)
    slow = sorted(taken)[round((len(taken) - 1) * 0.95)]
    return table.times(
        "a search",
        subject,
        taken,
        ratio=f"95 % within {table.seconds(slow)}",
        target=table.at_most(statistics.median(taken) * 1000, quick, " ms") if quick else "",
    )


def made(subject: str, started: float, target: float = 0.0, ratio: str = "") -> table.Row:
    taken = time.perf_counter() - started
    met = table.at_most(taken, target, " s") if target else ""
    return table.Row("made ready", subject, table.seconds(taken), ratio, target=met, runs="1")


def read_in_two_looks(trials: Trials) -> list[table.Row]:
    """What a model reads of each look."""
    index = trials.index(AS_SHIPPED_BY_MEANING)
    near = trials.near(AS_SHIPPED_BY_MEANING.name_share)
    sizes = {server: 0 for server in {tool.server for tool in trials.tools}}
    for tool in trials.tools:
        sizes[tool.server] += 1
    first, second = [], []
    for number, question in enumerate(trials.questions):
        text, close = question.text, near[number]
        servers = index.best_servers(text, 3, near=close)
        lines = [
            f"{server}: {sizes[server]} tools, such as "
            + ", ".join(names(index.search(text, MAX_EXAMPLES, server, near=close)))
            for server in servers
        ]
        first.append(tokens.count("\n".join(lines)))
        found = index.search(text, FIRST, servers[0], near=close)
        items = asyncio.run(described(found, "with_description"))
        second.append(
            tokens.count("\n".join(f"{item['name']}: {item['description']}" for item in items))
        )
    return [
        table.Row(COUNTED, subject, f"{statistics.median(counted):.0f}", runs=str(len(counted)))
        for subject, counted in (
            ("first look: three servers, three examples each", first),
            ("second look: five tools, described", second),
        )
    ]


def lost(asked: Sequence[Question], went: Sequence[Outcome]) -> Iterator[str]:
    for question, how in zip(asked, went, strict=True):
        if how.is_right and how.is_right_in_two_looks:
            continue
        why = ["one look"] * (not how.is_right) + ["two looks"] * (not how.is_right_in_two_looks)
        yield f"- {question.text} → {min(question.answers)} (lost in {' and '.join(why)})"


def by_words(known: Sequence[Tool], asked: Sequence[Question]) -> tuple[list[table.Row], Trials]:
    name = "divingbell, by words"
    tracemalloc.start()
    index = Index(known)
    held = tracemalloc.get_traced_memory()[0] / _MB
    tracemalloc.stop()
    started = time.perf_counter()
    index = Index(known)
    rows = [made(name, started, BUILT, f"{held:.0f} MB held")]
    trials = Trials(known, asked)
    more, _ = validated(name, trials, chosen_by_words(trials), AS_SHIPPED, (BY_WORDS, 0.0))
    rows += more
    rows += in_several_phrasings(trials, None)
    rows.append(timed(name, lambda query: names(index.search(query, FIRST)), asked, QUICK))
    return rows, trials


def by_meaning(
    name: str, encoder: Encoder, words: Trials, targets: tuple[float, float]
) -> tuple[list[table.Row], list[Outcome]]:
    remembering = Remembering(encoder)
    with tempfile.TemporaryDirectory() as folder:
        model = Embeddings(remembering, Path(folder))
        started = time.perf_counter()
        model.prepare(words.tools)
        rows = [made(f"{name}: all tools, once", started)]
        started = time.perf_counter()
        model.prepare(words.tools)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / _MB
        rows.append(made(f"{name}: all tools, from the disk", started, 0.0, f"{size:.1f} MB"))
    trials = Trials(words.tools, words.questions, remembering)
    choose = chosen_by_meaning(words, trials)
    more, went = validated(name, trials, choose, AS_SHIPPED_BY_MEANING, targets)
    rows += [*more, *in_several_phrasings(trials, remembering), *read_in_two_looks(trials)]
    index = Index(words.tools, embeddings=model)
    fresh = iter(range(10**9))

    def search(query: str) -> list[str]:
        # Else it would know the question from the round before.
        return names(index.search(f"{query} {next(fresh)}", FIRST))

    rows.append(timed(name, search, words.questions[:40], 0.0))
    return rows, went


def with_models(words: Trials, own: Path | None) -> tuple[list[table.Row], list[Outcome]]:
    """The model that comes with Divingbell, and one's own if there is one.

    Raises:
        ConfigError: a model is not there.
    """
    name = "divingbell, by words and meaning"
    started = time.perf_counter()
    encoder = minilm.load()
    rows = [made(f"{name}: the model", started)]
    more, went = by_meaning(name, encoder, words, (BY_MEANING, TWO_LOOKS))
    rows += more
    if own is not None:
        more, _ = by_meaning(
            f"divingbell, with {own.name}", onnx.load(own), words, (0.0, TWO_LOOKS)
        )
        rows += more
    return rows, went


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few of the questions, and by words alone"
    )
    parser.add_argument("--model", type=Path, help="a folder with a sentence model of your own")
    parser.add_argument("--lost", action="store_true", help="list the questions that are lost")
    given = parser.parse_args()
    known, asked = tools(), questions()[:: FEWER if given.quick else 1]
    started = time.perf_counter()
    peer = plain_bm25(known)
    rows = [
        made("SQLite FTS5", started),
        share_of(
            RIGHT, "SQLite FTS5", asked, [bool({*peer(q.text)} & q.answers) for q in asked], 0.0
        ),
        timed("SQLite FTS5", peer, asked, 0.0),
    ]
    more, words = by_words(known, asked)
    rows += more
    went = words.outcomes(AS_SHIPPED)
    if not given.quick:
        try:
            more, went = with_models(words, given.model)
            rows += more
        except ConfigError as error:
            rows.append(table.Row(RIGHT, "divingbell, by words and meaning", f"– ({error})"))
    print(f"{len(known)} tools of {len({tool.server for tool in known})} servers\n")
    print(table.render(rows))
    losses = list(lost(asked, went))
    print(f"\n{len(losses)} questions are lost in one look or in two" + (":" if given.lost else ""))
    print("\n".join(losses) if given.lost else "`./dev bench search --lost` lists them")
    print(f"\n{table.heading()}")


if __name__ == "__main__":
    main()
