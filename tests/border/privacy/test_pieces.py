"""Text in pieces: wherever it is cut, the same is shown, and never a part of a value."""

import itertools
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.border.privacy import pieces
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.pieces import MOST_HELD, PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen
from tests.border.privacy.samples import FOUND, NOT_FOUND, marked
from tests.border.privacy.test_scanner import HOSTILE

KNOWN = Learned()
KNOWN.add([
    ("Ann Lee", "NAME"),
    ("Ann Lee Smith-Jones", "NAME"),
    ("Lee", "NAME"),
    ("12 Main Street\nSpringfield", "ADDRESS"),
    ("Zoë", "NAME"),
])  # fmt: skip
SCREEN = Screen(Scanner(KINDS, {"EMPLOYEE": r"EMP-\d{6}"}), KNOWN)
NEUTRAL = "Nothing is told here of anyone. The sea was calm, and the bell went down.\n"
VALUES = [marked(sample)[0] for samples in FOUND.values() for sample in samples]
LEARNED = [
    "Ann Le...", "0  Ann Lee Smi… 1", "Ann Lee S\n[… 5 bytes left out …]", "Ann Lee S\n[1]",
    "Ann Lee", "Ann Lee Smith", "Ann Lee Smith-Jones.", "Leeds", "12 Main Street\nSpringfield",
    "12 Main Street\nShelby", r"12 Main Street\nSpringfield", "Zoë", r"Zo\u00eb", "EMP-123456",
]  # fmt: skip
DISGUISED = [
    "ann%40example.org", r"ann\u0040example.org", "ann&#64;example.org", "ann&commat;example.org",
    "4111\x1b[31m 1111\x1b[0m 1111 1111", "ann@\u200bexample.org",
    "４１１１１１１１１１１１１１１１",
    "4111%201111%201111%201111", "Ann%20Lee", "A\x1b[1mnn \x1b[0mLee", "Ann \x1b]0;a title\x07Lee",
    "phone:\n467 3395", "451 5986\nfax", r"ph\u006fne 467 3395", "555\u2011123\u20114567",
    "ann@exam\rple.org", "ann@exX\bample.org", "4111X\b 1111 1111 1111", "555-123-\r4567",
    "-----BEGIN%20PRIVATE%20KEY-----MIIEvQIBADANBgkqhkiG-----END%20PRIVATE%20KEY-----",
    "\x1b[32mok\x1b[0m", "a\r\nb", "50%", "100%\r", "a & b", "C:\\new\\table",
]  # fmt: skip
ALL = [*VALUES, *NOT_FOUND, *LEARNED, *DISGUISED]


def replaced(value: str, kind: str) -> str:
    return f"⟦{kind}⟧"


def whole(text: str, screen: Screen = SCREEN) -> str:
    parts, at = [], 0
    for find in screen.finds(text):
        parts += [text[at : find.start], replaced(text[find.start : find.end], find.kind)]
        at = find.end
    return "".join([*parts, text[at:]])


def shown(parts: Iterable[str], screen: Screen = SCREEN) -> list[str]:
    through = PieceScreen(screen, replaced)
    return [*map(through.feed, parts), through.end()]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is read as soon as it comes."""
    monkeypatch.setattr(pieces, "SAVED_WORK", 1 << 40)


def cut(text: str, places: Sequence[int]) -> list[str]:
    edges = [0, *sorted(place for place in places if place <= len(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("sample", ALL)
@pytest.mark.parametrize("around", [("", ""), (NEUTRAL, "\n" + NEUTRAL), ("see (", "), he said")])
def test_a_value_that_is_cut_anywhere_is_replaced(
    sample: str, around: tuple[str, str], eager: None
) -> None:
    text = sample.join(around)
    wanted = whole(text)
    assert "".join(shown(text)) == wanted
    for place in range(len(around[0]), len(around[0]) + len(sample) + 1):
        assert "".join(shown(cut(text, [place]))) == wanted


BETWEEN = ["\n", " ", "", "\n\n", ", ", ": ", "\t", "\r\n", "\r", '"', "\\n", "\x1b[0m", NEUTRAL]
texts = st.lists(
    st.one_of(
        st.sampled_from(ALL),
        st.sampled_from(BETWEEN),
        st.text(st.sampled_from("ab1 @.-+:/\\\"'%&;\n\t\x1b[é中\u200b４\r\b"), max_size=12),
    ),
    max_size=12,
).map("".join)


@settings(max_examples=300)
@given(texts, st.data())
def test_every_cutting_shows_the_same(text: str, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, max(0, len(text))), max_size=30))
    assert "".join(shown(cut(text, places))) == whole(text)


# The work grows with the square of a text, because nothing is saved here.
@settings(max_examples=30)
@given(texts)
def test_one_character_at_a_time_shows_the_same(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "SAVED_WORK", 1 << 40)
        assert "".join(shown(text)) == whole(text)


def prompt(*parts: str, screen: Screen = SCREEN) -> list[str]:
    """What is shown at once for each piece."""
    return shown(parts, screen)[:-1]


def test_whole_lines_are_shown_at_once() -> None:
    lines = [NEUTRAL, "loss=0.1234 step 12 of 100\n", "to ann@example.org\n", "\n", "x = 1\r\n"]
    assert prompt(*lines) == [*lines[:2], "to ⟦EMAIL⟧\n", *lines[3:]]


def test_of_a_line_without_an_end_only_the_last_words_are_held_back() -> None:
    assert prompt("Working... ") == ["Working... "]
    assert prompt("Working on it") == ["Working on "]
    [start] = prompt("Your answer is wanted here, please type it after this sign> ")
    assert start.endswith("sign> ")
    [start] = prompt("There was nothing of interest in it so far")
    assert len(start) > 30


@pytest.mark.parametrize(
    ("first", "second", "held"),
    [
        ("a\n-----BEGIN PRIVATE KEY-----\nMIIE\n", "no more\n", "a\n"),
        ("a\nthe number 4515986\n", "and so on, and so on, " * 3, "a\nthe "),
        ("a\n12 Main Street\n", "Shelbyville\n", "a\n"),
        ("see ann@exa", "mple\n", "see "),
        ("see 4111 1111 ", "1111\n", ""),
        ("see \x1b[3", "1mred\n", ""),
    ],
)  # fmt: skip
def test_what_may_go_on_is_held_back_until_it_is_decided(
    first: str, second: str, held: str
) -> None:
    through = PieceScreen(SCREEN, replaced)
    start = through.feed(first)
    assert start.startswith(held)
    assert len(start) < len(first)
    assert start + through.feed(second) + through.end() == first + second


def test_a_private_key_that_never_ends_is_held_back_no_further_than_a_key_is_long() -> None:
    begin = "-----BEGIN PRIVATE KEY-----\n"
    lines = [begin, *[NEUTRAL] * 400]
    most = size = 0
    for line, start in zip(lines, shown(lines), strict=False):
        size += len(line) - len(start)
        most = max(most, size)
    assert 16_000 < most < 20_000
    assert "".join(shown(lines)) == "".join(lines)


def test_past_the_bound_it_is_replaced_and_not_shown() -> None:
    chain = Screen(Scanner((), {"OWN": "a[^z]*b"}), Learned())
    lengths: list[int] = []

    def replace(value: str, kind: str) -> str:
        lengths.append(len(value))
        return "-"

    through = PieceScreen(chain, replace)
    start = "".join(through.feed("ab" * 10_000) for _ in range(8))
    assert {*start, *through.end()} == {"-"}
    assert sum(lengths) == 160_000
    assert max(lengths) <= 3 * MOST_HELD


class Counting:
    """A screen that counts what it reads."""

    def __init__(self, screen: Screen) -> None:
        self.screen, self.read, self.scans = screen, 0, 0

    def settling(self, text: str, since: int = 0) -> object:
        self.read += len(text)
        self.scans += 1
        return self.screen.settling(text, since)

    def finds(self, text: str) -> object:
        self.read += len(text)
        return self.screen.finds(text)


@pytest.mark.parametrize("name", [*HOSTILE, "neutral", "lines", "words"])
@pytest.mark.parametrize("size", [1, 7, 80])
def test_the_work_is_in_proportion_to_the_text(name: str, size: int) -> None:
    of = HOSTILE.get(name) or {"neutral": NEUTRAL, "lines": "a\n", "words": "a word "}[name]
    text = of * (10_000 // len(of))
    counting = Counting(SCREEN)
    through = PieceScreen(counting, replaced)  # type: ignore[arg-type]
    for at in range(0, len(text), size):
        through.feed(text[at : at + size])
    through.end()
    assert counting.read <= (pieces.WORK + 1) * len(text) + 2 * pieces.SAVED_WORK
    allowed = pieces.WORK * len(text) + pieces.SAVED_WORK
    assert counting.scans <= 1 + allowed / pieces.BEGINNING


def test_pieces_that_were_not_read_yet_are_shown_when_no_more_comes() -> None:
    through = PieceScreen(SCREEN, replaced)
    start = "".join(map(through.feed, "no\n" * 5_000))
    assert len(start) < 15_000
    assert start + through.feed("") == "no\n" * 5_000


def test_it_gives_way_and_takes_one_piece_at_a_time() -> None:
    through = PieceScreen(SCREEN, replaced)
    text = (NEUTRAL * 20 + "ann@example.org\n") * 100
    steps = through.feeding(text)
    next(steps)
    with pytest.raises(RuntimeError, match="wait until it is"):
        next(through.feeding("x"))
    given_way, rest = 1, ""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            rest = done.value
            break
        given_way += 1
    assert given_way >= len(text) // pieces.STEP
    assert rest + through.end() == whole(text)


def test_threads_may_feed_texts_with_one_screen() -> None:
    text = "\n".join(ALL) * 3
    with ThreadPoolExecutor(4) as threads:
        results = threads.map(lambda size: "".join(shown(_each(text, size))), [999, 50, 333, 7000])
        assert {*results} == {whole(text)}


def _each(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_a_replacement_that_fails_shows_nothing_and_loses_nothing() -> None:
    fails = [True]

    def replace(value: str, kind: str) -> str:
        if fails.pop():
            raise OSError("the vault is away")
        return "-"

    through = PieceScreen(SCREEN, replace)
    with pytest.raises(OSError, match="away"):
        through.feed("to ann@example.org\n")
    fails.append(False)
    assert through.feed("b\n") == "to -\nb\n"
