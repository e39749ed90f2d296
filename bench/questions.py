"""Questions whose right answers are known, among the tools of more than fifty real servers.

Two sets, by different authors: those that search was first tried with, and others that were
written from a random sample of the tools, by somebody who had not seen the first. The synonyms of
search are by the author of the second set: their worth is what they do on the first.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tool_lists import search_phrasings, search_practice, search_queries, tool_lists

from divingbell.tool import Tool

SETS = ("the first set", "the second set")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answers: frozenset[str]
    home: str
    """The server of its first answer."""
    source: str


def questions() -> list[Question]:
    """All that have an answer among the tools."""
    return [
        Question(
            item["query"],
            frozenset(item["answers"]),
            item["answers"][0].partition(".")[0],
            source,
        )
        for source, items in zip(SETS, (search_queries(), search_practice()), strict=True)
        for item in items
    ]


def phrased() -> list[Question]:
    """The first set in three phrasings each: `a | b | c`.

    The two that were added are of a model that had seen the questions and not the answers. But it
    knew servers of this kind, and some of these: what is reached with them is an upper bound.
    """
    more = {item["query"]: item["phrasings"] for item in search_phrasings()}
    return [
        replace(question, text=" | ".join([question.text, *more[question.text]]))
        for question in questions()
        if question.text in more
    ]


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
