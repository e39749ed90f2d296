"""Tool lists of more than fifty real servers, and questions that search must answer.

The lists are the work of others: `tests/data/SOURCES.md` names origin and licence of each, and
which are left out because their licence does not allow it. DIVINGBELL_TEST_DATA names a folder
with other lists to use in their place: `tools/<server>.json`, the tools as the server lists them.
"""

import functools
import gzip
import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "DIVINGBELL_TEST_DATA"
DATA = Path(__file__).parent / "data"


@functools.cache
def tool_lists() -> dict[str, list[dict[str, Any]]]:
    """Return the `tools/list` answer of each server. Shared between tests: don't change it."""
    if folder := os.environ.get(VARIABLE):
        files = sorted(Path(folder, "tools").glob("*.json"))
        if not files:
            raise FileNotFoundError(f"{VARIABLE} is {folder}, which has no tools/*.json: unset it")
        return {file.stem: json.loads(file.read_text("utf-8")) for file in files}
    packed = (DATA / "tool_lists.json.gz").read_bytes()
    found: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(packed))
    return found


def search_queries() -> list[dict[str, Any]]:
    """Return questions, each with every acceptable answer among the tools of the lists."""
    return _answerable("search_queries.json")


def search_practice() -> list[dict[str, Any]]:
    """Return others, of another author, written from a random sample of the tools."""
    return _answerable("search_practice.json")


def search_phrasings() -> list[dict[str, Any]]:
    """Return for each of `search_queries` two more ways to put it, by one who knew such tools."""
    found: list[dict[str, Any]] = _read("search_phrasings.json")
    return found


def _answerable(name: str) -> list[dict[str, Any]]:
    """The questions that the lists have an answer to, with the answers that they have."""
    there = {f"{server}.{tool['name']}" for server, tools in tool_lists().items() for tool in tools}
    found = []
    for question in _read(name):
        if answers := [answer for answer in question["answers"] if answer in there]:
            found.append({**question, "answers": answers})
    return found


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text("utf-8"))
