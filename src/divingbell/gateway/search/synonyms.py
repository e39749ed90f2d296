"""Synonyms: words of the trade that mean the same (synonyms.txt), by their stems."""

import functools
from pathlib import Path

from divingbell.gateway.search.stemming import stems

FILE = Path(__file__).with_name("synonyms.txt")


@functools.cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return for each stem, or pair of stems, those that stand for it."""
    found: dict[str, dict[str, None]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        terms = [" ".join(stems(term.replace("-", " "))) for term in line.split()]
        group = dict.fromkeys(filter(None, terms))
        for term in group:
            found.setdefault(term, {}).update(group)
    return {term: tuple(other for other in group if other != term) for term, group in found.items()}
