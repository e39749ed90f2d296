"""Tool lists of more than fifty real servers, and questions that search must answer.

The lists are the work of others under many licences, so they are no part of this project: they
lie in `../shared/data/tools` beside the checkout, one JSON file per server. DIVINGBELL_TEST_DATA
names another folder. Where there is none, the tests that need them are skipped, and say so.
"""

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DIVINGBELL_TEST_DATA", ROOT.parent / "shared" / "data"))


@functools.cache
def tool_lists() -> dict[str, list[dict[str, Any]]]:
    """Return the `tools/list` answer of each server. Shared between tests: don't change it."""
    files = sorted((DATA / "tools").glob("*.json"))
    if not files:
        pytest.skip("no tool lists beside the checkout: set DIVINGBELL_TEST_DATA to their folder")
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def search_queries() -> list[dict[str, Any]]:
    """Return questions, each with every acceptable answer among the tools of the lists."""
    return _questions("search_queries.json")


def search_practice() -> list[dict[str, Any]]:
    """Return others, of another author, written from a random sample of the tools."""
    return _questions("search_practice.json")


def search_phrasings() -> list[dict[str, Any]]:
    """Return for each of `search_queries` two more ways to put it, by one who knew such tools."""
    return _questions("search_phrasings.json")


def _questions(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "tests" / "data" / name).read_text("utf-8"))
    return found
