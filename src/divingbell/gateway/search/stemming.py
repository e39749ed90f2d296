"""Stems: words of queries and of tools, cut to what two forms of a word have in common."""

import functools
import re

MAX_WORD = 40

_WORD = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_STOP_WORDS = """
a an the and or but if then than that this these those it its is are was were be been being
am do does did done doing have has had having i me my mine we us our you your he him his she
her they them their of in on at to for from with by about into onto over under out up off as
so not no nor can could should would will shall may might must let please want need like
just only own same too very s t d ll m re ve here there when where why how what which who whom
any some each both few more most other such via per etc also using use used tool tools
take keep whole thing things something anything someone much many still yet
"""
_STOP = frozenset(_STOP_WORDS.split())
_READS_WORDS = """
list show get fetch find search read view describe look check see count query what which who
where when how is are does did why tell give compare
"""
_READS = frozenset(_READS_WORDS.split())
_WRITES_WORDS = """
create add make new update edit change set delete remove drop send post write insert move
rename merge close start stop run deploy cancel assign upload put save publish apply
"""
_WRITES = frozenset(_WRITES_WORDS.split())


def stems(text: str) -> list[str]:
    """Return the stems of the words in a text: names are split, stop words left out."""
    found = []
    for part in _WORD.findall(text):
        for piece in _pieces(part):
            if piece not in _STOP and not (len(piece) < 3 and piece.isdigit()):
                found.append(stem(piece))
    return found


def split_name(name: str) -> str:
    """Return a name as words: `linear_createIssue` is "linear create Issue"."""
    return " ".join(_HUMPS.sub(" ", part) for part in _WORD.findall(name))


def _pieces(part: str) -> list[str]:
    if part.islower() or part.isupper():
        return [part.lower()[:MAX_WORD]]
    return [piece.lower()[:MAX_WORD] for piece in _HUMPS.split(part)]


def proper_names(text: str) -> list[str]:
    """Return the words that are spelt like GitHub, whole: on the other side it may be github."""
    return [
        stem(part.lower()[:MAX_WORD])
        for part in _WORD.findall(text)
        if part[0].isupper() and not part.isupper() and len(_HUMPS.split(part)) == 2
    ]


_SUFFIXES = (
    ("izations", "iz"), ("ization", "iz"), ("ational", ""), ("ations", ""), ("ation", ""),
    ("ating", ""), ("ated", ""), ("ates", ""), ("ate", ""), ("ators", ""), ("ator", ""),
    ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""), ("iness", "i"), ("ness", ""),
    ("sses", "ss"), ("ies", "i"), ("ied", "i"), ("ions", ""), ("ion", ""), ("ers", ""), ("er", ""),
    ("ors", ""), ("or", ""), ("able", ""), ("ible", ""), ("ed", ""), ("es", ""), ("ly", ""),
    ("al", ""), ("s", ""), ("e", ""),
)  # fmt: skip
_VOWEL = re.compile("[aeiouy]")


@functools.lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return a word without its ending: "aggregates" and "aggregation" become one.

    Crude on purpose. It only has to do the same to both sides; that it makes no word of the
    language does not matter.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith(("ss", "us", "is")):
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix):
            rest = word[: -len(suffix)] + instead
            if len(rest) >= 3 and _VOWEL.search(rest):
                word = rest
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def slips(word: str) -> set[str]:
    """Return what a word may be meant as: one letter left out, doubled, swapped or wrong."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = {left + right[1:] for left, right in cuts if right}
    found |= {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}
    found |= {left + letter + right[1:] for left, right in cuts if right for letter in letters}
    found |= {left + letter + right for left, right in cuts for letter in letters}
    return found


def intent(text: str) -> str:
    """Say whether words ask to know ("reads") or to do ("writes"), by the first that tells."""
    for word in _WORD.findall(text.lower())[:6]:
        if word in _WRITES:
            return "writes"
        if word in _READS:
            return "reads"
    return ""
