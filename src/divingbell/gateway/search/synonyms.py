"""Words of the trade that mean the same: synonyms.txt, by the stems that the index has."""

import functools
from pathlib import Path

from divingbell.gateway.search.stemming import words

FILE = Path(__file__).with_name("synonyms.txt")


@functools.cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return for each stem (or pair of stems) those that stand for it."""
    found: dict[str, dict[str, None]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        stems = [" ".join(words(term.replace("-", " "))) for term in line.split()]
        for stem in filter(None, stems):
            found.setdefault(stem, {}).update(dict.fromkeys(filter(None, stems)))
    return {
        stem: tuple(other for other in all_of_it if other != stem)
        for stem, all_of_it in found.items()
    }
