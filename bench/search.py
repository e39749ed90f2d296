"""Finding the right tool: how often it is among the first five, and how long that takes.

The tools of more than fifty real servers; questions whose right answers are known. Beside ours,
in the same run: SQLite's FTS5 with its own BM25 over name and description.
"""

import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tool_lists import search_queries, tool_lists

from divingbell.errors import ConfigError
from divingbell.gateway import meaning
from divingbell.gateway.search import Index
from divingbell.gateway.tool import Tool

Search = Callable[[str, int], Sequence[str]]
FIRST = 5
ROUNDS = 3
BY_WORDS = 0.62
BY_MEANING = 0.78
QUICK = 10.0
BUILT = 1.0


def tools() -> list[Tool]:
    """All tools of the lists, as the catalog has them."""
    return [
        Tool(
            server,
            tool["name"],
            server,
            tool["name"],
            tool.get("description") or "",
            tool.get("inputSchema"),
            tool.get("outputSchema"),
            tool.get("annotations"),
        )
        for server, listed in tool_lists().items()
        for tool in listed
    ]


def plain_bm25(known: Sequence[Tool]) -> Search:
    """The peer: FTS5 as everybody would set it up."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE tools USING fts5(full UNINDEXED, name, description)")
    database.executemany(
        "INSERT INTO tools VALUES (?, ?, ?)",
        ((tool.full_name, f"{tool.server} {tool.name}", tool.description) for tool in known),
    )

    def search(query: str, limit: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        found = database.execute(
            "SELECT full FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?", (words, limit)
        )
        return [name for (name,) in found]

    return search


def ours(index: Index) -> Search:
    return lambda query, limit: [tool.full_name for tool in index.search(query, limit)]


def measure(name: str, search: Search, target: float, quick: float) -> list[table.Row]:
    """Ask all questions; a right answer is one of those that are listed for it."""
    queries = search_queries()
    first = right = 0
    taken = []
    for number in range(ROUNDS + 1):
        for query in queries:
            started = time.perf_counter()
            found = search(query["query"], FIRST)
            if number:  # the first round is not counted
                taken.append(time.perf_counter() - started)
                continue
            first += bool(set(found[:1]) & set(query["answers"]))
            right += bool(set(found) & set(query["answers"]))
    share = right / len(queries)
    slow = sorted(taken)[round((len(taken) - 1) * 0.95)]
    median = statistics.median(taken) * 1000
    return [
        table.Row(
            "a right tool in the first five",
            name,
            f"{share:.1%}",
            ratio=f"first of all: {first / len(queries):.1%}",
            target=_share(share, target) if target else "",
            runs=str(len(queries)),
        ),
        table.times(
            "a search",
            name,
            taken,
            ratio=f"95 % within {table.seconds(slow)}",
            target=table.at_most(median, quick, " ms") if quick else "",
        ),
    ]


def _share(reached: float, wanted: float) -> str:
    return f"≥ {wanted:.0%}: " + ("met" if reached >= wanted else "NOT met")


def _made(name: str, started: float, target: float = 0.0) -> table.Row:
    taken = time.perf_counter() - started
    return table.Row(
        "made ready",
        name,
        table.seconds(taken),
        target=table.at_most(taken, target, " s") if target else "",
        runs="1",
    )


def main() -> None:
    known = tools()
    rows = []
    started = time.perf_counter()
    peer = plain_bm25(known)
    rows += [_made("SQLite FTS5", started), *measure("SQLite FTS5", peer, 0.0, 0.0)]

    started = time.perf_counter()
    index = Index(known)
    rows.append(_made("divingbell, by words", started, BUILT))
    rows += measure("divingbell, by words", ours(index), BY_WORDS, QUICK)

    name = "divingbell, by words and meaning"
    try:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            model = meaning.load(Path(folder))
            rows.append(_made(f"{name}: the model", started))
            started = time.perf_counter()
            model.prepare(known)
            rows.append(_made(f"{name}: all tools, once", started))
            started = time.perf_counter()
            model.prepare(known)
            rows.append(_made(f"{name}: all tools, from the disk", started))
            rows += measure(name, ours(Index(known, meaning=model)), BY_MEANING, 0.0)
    except ConfigError as error:
        rows.append(table.Row("a right tool in the first five", name, f"– ({error})"))
    print(f"{len(known)} tools of {len(tool_lists())} servers\n")
    print(table.render(rows))
    print(f"\n{table.heading()}")


if __name__ == "__main__":
    main()
