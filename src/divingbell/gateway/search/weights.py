"""Weights by which tools are ranked, as they were measured.

`bench/validation.py` chooses all of them on a part of its questions and tries them on the others;
these are what it chooses on all of them. Its figures say how much of the recall is in them: little.
"""

from dataclasses import dataclass

FIELDS = {
    "name": 3.0,
    "server": 1.0,
    "title": 1.0,
    "lead": 2.0,
    "rest": 1.0,
    "parameters": 1.0,
    "details": 1.0,
    "purpose": 0.5,
}
"""Points of a word, by the place where a tool has it: `lead` is the first sentence of the
description, `details` what is said of parameters and results, `purpose` what the server says of
itself."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Points for the ways in which a tool fits a query."""

    synonym: float
    """A synonym, where the very word is 1."""
    covers_name: float
    """All words of the tool's name are asked for."""
    names_server: float
    """The query names the server."""
    suits: float
    """It reads where the query asks to know, and writes where it asks to do."""
    nearness: float = 0.0
    """The query means exactly what the tool says."""
    server_words: float = 1.0
    """The share of all but nearness that counts where servers are ranked, and not tools."""


BY_WORDS = Weights(synonym=0.7, covers_name=5.0, names_server=3.0, suits=2.5)
BY_MEANING = Weights(
    synonym=0.5, covers_name=0.0, names_server=3.0, suits=10.0, nearness=100.0, server_words=0.0
)
"""Weights where meaning counts as well. For servers it alone does: the words that a query has in
common with some tool of a large server say little about the server."""
