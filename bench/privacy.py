"""Personal data and secrets in texts: how many are found, how many falsely, and how fast.

    ./dev bench privacy [--quick] [--no-install] [--profile] [--missed] [--tuned] [--held-out]
        [--serve]

Beside ours, in the same run: presidio-analyzer without a model, datafog and scrubadub, each in an
environment of its own. Words and limits were tuned on one half of the sentences; figures come from
the other half (`--tuned` shows the first), which was read before but not tuned on: personal_data.py
says what follows from that. held_out.py makes a set of which the half that figures come from was
tuned on by nobody: those are the figures to go by. What nobody could find is in them, and is told
apart by two rules: a label is wrong if the check digits of a card or an account fail, a social
security number is never given out, or an address is not public; a number is bare if it is digits
alone in a text without a word, and no known network of cards has it. `--missed` lists what is not
found, and what is found falsely; with `--held-out`, of that set. `--profile` shows where the time
goes: in texts without personal data, in lines that all have some, and in short sentences. `--serve`
measures only what it costs through `divingbell serve`.
"""

import argparse
import asyncio
import cProfile
import csv
import dataclasses
import html
import io
import ipaddress
import itertools
import json
import pstats
import re
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import personal_data
import table
import transformed
from detecting import asked, texts_made
from personal_data import Sample
from private_serving import WORDS, private_serving
from turns import Unable

from divingbell.border.privacy import validators
from divingbell.border.privacy.engines import HyperscanEngine
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import MOST_VALUES, Learned
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen

PEERS = ("presidio", "datafog", "scrubadub")
COMPARED = tuple(personal_data.VALUES)
WANTED = {kind: (0.98, 0.95) for kind in COMPARED} | {"PHONE": (0.9, 0.95)}
"""Least recall and precision."""
WANTED_LEARNED = 0.99
CLEAN_SHARE = 0.7
LEARNED_SPEED = 12.0
DENSE_SPEED = 3.0
TIMES_PRESIDIO = 50.0
FALSE_IN_100_KB = 1.0

Places = Sequence[Sequence[tuple[int, int, str]]]


def held_out(times: int, tuned: bool, install: bool, countries: str = "usual") -> list[Sample]:
    """One half of the set of held_out.py.

    Raises:
        Unable: Faker is not installed.
    """
    made = texts_made(times, countries, install)
    samples = (
        Sample(each["text"], tuple(map(tuple, each["values"])), each["template"], each["has_words"])
        for each in made
    )
    return [sample for sample in samples if sample.is_held_out != tuned]


def on_held_out(times: int, tuned: bool, install: bool) -> Iterator[table.Row]:
    half = "choosing half" if tuned else "held out"
    try:
        samples = held_out(times, tuned, install)
    except Unable as error:
        yield table.Row("recall, precision", f"divingbell, {half}", f"– ({error})")
        return
    scanner = Scanner(KINDS)
    found = [scanner.finds(sample.text) for sample in samples]
    yield from judged(samples, found, f"divingbell, {half}", wanted=True)
    yield from judged_apart(samples, found, f"divingbell, {half}")
    others = held_out(times, tuned, install, "other")
    theirs = [scanner.finds(sample.text) for sample in others]
    yield from judged(others, theirs, f"divingbell, {half}, other countries", wanted=False)
    yield from judged_apart(others, theirs, f"divingbell, {half}, other countries")
    sets = ("numbers", "newest", "apart", "later") if tuned else ("numbers", "newest", "apart")
    dialled = {name: held_out(2 * times, tuned, install, name) for name in sets}
    for name, about in dialled.items():
        theirs = [scanner.finds(sample.text) for sample in about]
        yield from numbers_judged(about, theirs, f"divingbell, {half}, {name}", wanted=True)
        theirs = [finds_at_border(scanner, sample.text) for sample in about]
        subject = f"divingbell, {half}, {name}, with what fields say"
        yield from numbers_judged(about, theirs, subject, wanted=False)
    # All at once: to start a peer takes seconds.
    everything = [*samples, *itertools.chain.from_iterable(dialled.values())]
    for peer in PEERS:
        try:
            theirs, _ = asked(peer, [sample.text for sample in everything], install)
        except Unable as error:
            yield table.Row("recall, precision", f"{peer}, {half}", f"– ({error})")
            continue
        yield from judged(samples, theirs[: len(samples)], f"{peer}, {half}", wanted=False)
        at = len(samples)
        for name, about in dialled.items():
            of_set = theirs[at : at + len(about)]
            yield from numbers_judged(about, of_set, f"{peer}, {half}, {name}", wanted=False)
            at += len(about)


def finds_at_border(scanner: Scanner, text: str) -> list[tuple[int, int, str]]:
    """Find what is hidden where a tool returns this text and code prints it: by shape, and what
    stands in fields and columns whose names say what they hold."""
    learned = Learned()
    learner = Learner(Fields(), learned)
    learner.learn(text, "crm.find")
    learner.learn_shown([text])
    return list(Screen(scanner, learned).finds(text))


def judged(
    samples: Sequence[Sample], found: Places, subject: str, wanted: bool
) -> Iterator[table.Row]:
    """Recall and precision of each kind."""
    right, lost, false = counted(samples, found)
    for kind in COMPARED:
        recall = right[kind] / max(1, right[kind] + lost[kind])
        precision = right[kind] / max(1, right[kind] + false[kind])
        least, exact = WANTED[kind]
        met = recall >= least and precision >= exact
        target = f"≥ {least:g} at ≥ {exact:g}: {'met' if met else 'NOT met'}" if wanted else ""
        yield table.Row(
            f"{kind}: recall, precision",
            subject,
            f"{recall:.3f}, {precision:.3f}",
            target=target,
            runs=str(right[kind] + lost[kind]),
        )


def numbers_judged(
    samples: Sequence[Sample], found: Places, subject: str, wanted: bool
) -> list[table.Row]:
    """The row of telephone numbers, in a set that has no other kind in each of its texts."""
    return [
        row for row in judged(samples, found, subject, wanted) if row.measure.startswith("PHONE")
    ]


def judged_apart(samples: Sequence[Sample], found: Places, subject: str) -> Iterator[table.Row]:
    """Recall of each kind without what nobody could find; a row for those that have such."""
    lost, right, wrong, untold = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for sample, finds in zip(samples, found, strict=True):
        for start, end, kind in sample.values:
            value = sample.text[start:end]
            if is_no_value(value, kind):
                wrong[kind] += 1
            elif is_untold(sample, value, kind):
                untold[kind] += 1
            elif any(a <= start and end <= b and of == kind for a, b, of in finds):
                right[kind] += 1
            else:
                lost[kind] += 1
    for kind in COMPARED:
        if wrong[kind] or untold[kind]:
            yield table.Row(
                f"{kind}: recall without {wrong[kind]} wrong labels, {untold[kind]} bare numbers",
                subject,
                f"{right[kind] / max(1, right[kind] + lost[kind]):.3f}",
                runs=str(right[kind] + lost[kind]),
            )


CHECKS: dict[str, Callable[[str], bool]] = {
    "CARD": validators.is_card,
    "SSN": validators.is_ssn,
    "IBAN": validators.is_iban,
    "IP": lambda value: ipaddress.ip_address(value).is_global,
}


def is_no_value(value: str, kind: str) -> bool:
    """Whether it is labelled wrongly: check digits that fail, an address that nobody can have."""
    return kind in CHECKS and not CHECKS[kind](value)


def is_untold(sample: Sample, value: str, kind: str) -> bool:
    """Whether nothing in the text tells it from any number: bare digits in a text without words.

    Cards of the networks that `validators` knows tell themselves.
    """
    if sample.has_words or not value.isdecimal():
        return False
    return kind == "PHONE" or (kind == "CARD" and not validators.has_issuer(value))


def counted(
    samples: Sequence[Sample], found: Places
) -> tuple["Counter[str]", "Counter[str]", "Counter[str]"]:
    """How many values of each kind are covered, how many are not, and how many finds are false."""
    right: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for sample, finds in zip(samples, found, strict=True):
        for start, end, kind in sample.values:
            is_covered = any(a <= start and end <= b and of == kind for a, b, of in finds)
            (right if is_covered else lost)[kind] += 1
        for a, b, of in finds:
            false[of] += not any(s < b and a < e and of == kind for s, e, kind in sample.values)
    return right, lost, false


def missed(samples: Sequence[Sample], found: Places) -> Iterator[str]:
    for sample, finds in zip(samples, found, strict=True):
        text = sample.text
        for start, end, kind in sample.values:
            if not any(a <= start and end <= b and of == kind for a, b, of in finds):
                yield f"- {kind} not found: {text[start:end]!r} {_around(text, start, end)}"
        for a, b, of in finds:
            if of in COMPARED and not any(s < b and a < e and of == k for s, e, k in sample.values):
                yield f"- {of} found falsely: {text[a:b]!r} {_around(text, a, b)}"


def _around(text: str, start: int, end: int) -> str:
    return f"in {text[max(0, start - 50) : end + 20]!r}"


def accuracy(samples: list[Sample], install: bool) -> Iterator[table.Row]:
    scanner = Scanner(KINDS)
    found = [scanner.finds(sample.text) for sample in samples]
    yield from judged(samples, found, "divingbell", wanted=True)
    # That a word may come after a number was seen in templates of the other half alone.
    scanner._shapes = [
        dataclasses.replace(shape, check=lambda _: False) if shape.words_behind else shape
        for shape in scanner._shapes
    ]
    found = [scanner.finds(sample.text) for sample in samples]
    [without] = [
        row
        for row in judged(samples, found, "divingbell, no words behind numbers", wanted=True)
        if row.measure.startswith("PHONE")
    ]
    yield without
    for peer in PEERS:
        try:
            theirs, _ = asked(peer, [sample.text for sample in samples], install)
            yield from judged(samples, theirs, peer, wanted=False)
        except Unable as error:
            yield table.Row("recall, precision", peer, f"– ({error})")


def numbers_of_others(install: bool) -> Iterator[table.Row]:
    """Telephone numbers as Faker writes them in twenty countries: no form of them is ours."""
    scanner = Scanner(KINDS)
    try:
        numbers, _ = asked("faker", [], install)
    except Unable as error:
        yield table.Row("PHONE: recall, numbers by Faker", "divingbell", f"– ({error})")
        return
    for where, sentence in (
        ("beside a word", "Her phone is {}, she said."),
        ("without one", "It says {} there."),
    ):
        start = sentence.index("{")
        right = sum(
            any(
                find.kind == "PHONE" and find.start <= start and find.end >= start + len(number)
                for find in scanner.finds(sentence.format(number))
            )
            for number in numbers
        )
        yield table.Row(
            f"PHONE: recall, numbers by Faker {where}",
            "divingbell",
            f"{right / len(numbers):.3f}",
            runs=str(len(numbers)),
        )


def _csv(value: str) -> str:
    file = io.StringIO()
    csv.writer(file).writerow([1, value, "x"])
    return file.getvalue()


def _traceback(value: str) -> str:
    try:
        raise ValueError(f"no such customer: {value!r}")
    except ValueError:
        return traceback.format_exc()


WAYS: dict[str, Callable[[str], str]] = {
    "text": lambda value: f"It is {value}.",
    "repr": lambda value: repr({"name": value}),
    "JSON": lambda value: json.dumps({"name": value}),
    "CSV": _csv,
    "HTML": lambda value: f"<td>{html.escape(value)}</td>",
    "traceback": _traceback,
    "a cell that pandas has cut": lambda value: f"0  {repr(value)[1:-4]}...  17",
}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def learned_again(count: int) -> Iterator[table.Row]:
    """Whether each value of a result is found, in each way to write it, once that was learned."""
    people = personal_data.people(count)
    known = Learned()
    result = {"content": [{"type": "text", "text": json.dumps(personal_data.answer(people))}]}
    lesson = Learner(Fields(), known).learn(result, "crm.list_customers")
    assert (lesson.refused, lesson.problem) == (0, "")
    for way, written in WAYS.items():
        right = 0
        for value, _ in people:
            text = written(value)
            # What is left must be as if there had been no value.
            left = text
            for find in reversed(known.finds(text)):
                left = left[: find.start] + left[find.end :]
            right += _words(left) == _words(written(""))
        share = right / len(people)
        met = "met" if share >= WANTED_LEARNED else "NOT met"
        yield table.Row(
            f"learned names and addresses, as {way}",
            "divingbell",
            f"{share:.4f}",
            target=f"≥ {WANTED_LEARNED:g}: {met}",
            runs=str(len(people)),
        )


def speed(size: float, seconds: Sequence[float]) -> float:
    """Megabytes a second of the median."""
    return size / statistics.median(seconds) / 1e6


def in_turns(rounds: int, *ways: Callable[[], object]) -> list[list[float]]:
    """Processor time of each way, one after another in each round."""
    taken: list[list[float]] = [[] for _ in ways]
    for number in range(rounds + 1):
        for times, way in zip(taken, ways, strict=True):
            started = time.process_time()
            way()
            if number:  # the first round is not counted
                times.append(time.process_time() - started)
    return taken


def bare(scanner: Scanner, data: bytes) -> Callable[[], object]:
    """One pass of the same expressions that nobody listens to."""
    engine = scanner._engine
    assert isinstance(engine, HyperscanEngine)
    scratch = engine._scratch_of_thread()
    return lambda: engine._database.scan(
        data, match_event_handler=lambda *hit: None, scratch=scratch
    )


def _row(measure: str, subject: str, value: float, rounds: int, **more: str) -> table.Row:
    return table.Row(measure, subject, f"{value:.1f} MB/s", runs=str(rounds), **more)


def on_clean_texts(texts: dict[str, str], rounds: int) -> Iterator[table.Row]:
    """Texts without personal data, beside one pass of the engine alone."""
    scanner = Scanner(KINDS)
    shares, found, total = [], 0, 0
    for name, text in texts.items():
        data = text.encode()
        ours, alone = in_turns(rounds, lambda text=text: scanner.finds(text), bare(scanner, data))
        share = statistics.median(alone) / statistics.median(ours)
        shares.append((statistics.median(alone), statistics.median(ours)))
        mine, theirs = speed(len(data), ours), speed(len(data), alone)
        yield _row(
            f"no personal data: {name}", "divingbell", mine, rounds, ratio=f"{share:.2f} of bare"
        )
        yield _row(f"no personal data: {name}", "hyperscan alone", theirs, rounds)
        finds = [find for find in scanner.finds(text) if not is_example(text, find.start, find.end)]
        found, total = found + len(finds), total + len(data)
    alone_all, ours_all = map(sum, zip(*shares, strict=True))
    share = alone_all / ours_all
    met = "met" if share >= CLEAN_SHARE else "NOT met"
    yield table.Row(
        "no personal data: all together", "divingbell", f"{share:.2f} of bare",
        target=f"≥ {CLEAN_SHARE:g}: {met}",
    )  # fmt: skip
    each = found / total * 100_000
    yield table.Row(
        "false finds in 100 kB of these", "divingbell", f"{each:.3f}", runs=f"{total // 1000} kB",
        target=table.at_most(each, FALSE_IN_100_KB, ""),
    )  # fmt: skip


def is_example(text: str, start: int, end: int) -> bool:
    """Addresses that stand in the source as examples are real finds."""
    return "@example." in text[start:end]


def with_values(rows: int, values: int, rounds: int) -> Iterator[table.Row]:
    """A hundred thousand learned values, and values in every line."""
    text = personal_data.code()
    known = Learned()
    known.add(personal_data.people(values))
    screen = Screen(Scanner(KINDS), known)
    of_known, of_both = in_turns(rounds, lambda: known.finds(text), lambda: screen.finds(text))
    for subject, taken in (("learned values alone", of_known), ("with all shapes", of_both)):
        reached = speed(len(text), taken)
        yield _row(
            f"{len(known):,} learned values", f"divingbell, {subject}", reached, rounds,
            target=f"≥ {LEARNED_SPEED:g} MB/s: {'met' if reached >= LEARNED_SPEED else 'NOT met'}",
        )  # fmt: skip
    dense, scanner = personal_data.customers(rows), Scanner(KINDS)
    assert len(scanner.finds(dense)) == 2 * rows
    [taken] = in_turns(rounds, lambda: scanner.finds(dense))
    reached = speed(len(dense), taken)
    yield _row(
        "e-mail and telephone in every line", "divingbell", reached, rounds,
        target=f"≥ {DENSE_SPEED:g} MB/s: {'met' if reached >= DENSE_SPEED else 'NOT met'}",
    )  # fmt: skip


def in_pieces(lines: int, rounds: int) -> Iterator[table.Row]:
    """Text as a cell prints it, line by line or all of it, beside one scan of the whole."""
    known = Learned()
    known.add(personal_data.people(1_000))
    screen = Screen(Scanner(KINDS), known)
    for name, text in (
        ("lines of 80", personal_data.logs(lines)),
        ("e-mail and telephone in every line", personal_data.customers(lines)),
    ):
        each = [f"{line[:79]:79}\n" for line in text.splitlines()]
        joined = "".join(each)
        whole, at_once, by_line, by_character = in_turns(
            rounds,
            lambda joined=joined: screen.finds(joined),
            lambda joined=joined: shown_in_pieces(screen, [joined]),
            lambda each=each: shown_in_pieces(screen, each),
            lambda joined=joined: shown_in_pieces(screen, joined[: len(joined) // 10]),
        )
        yield _row(f"in pieces: {name}", "one scan", speed(len(joined), whole), rounds)
        for subject, taken, size in (
            ("one piece", at_once, len(joined)),
            ("by line", by_line, len(joined)),
            ("by character", by_character, len(joined) / 10),
        ):
            reached = speed(size, taken)
            times = speed(len(joined), whole) / reached
            yield _row(
                f"in pieces: {name}", subject, reached, rounds, ratio=f"{times:.1f}× one scan"
            )


def shown_in_pieces(screen: Screen, pieces: Iterable[str]) -> None:
    through = PieceScreen(screen, lambda value, kind: f"[{kind}]")
    for piece in pieces:
        through.feed(piece)
    through.end()


def beside_peers(measure: str, texts: list[str], install: bool, rounds: int) -> Iterator[table.Row]:
    """The same texts, for the same kinds."""
    scanner, size = Scanner(COMPARED), sum(map(len, texts))

    def ours_once() -> None:
        validators._is_international.cache_clear()  # peers see each text once, too
        validators.is_public_ip.cache_clear()
        for text in texts:
            scanner.finds(text)

    [taken] = in_turns(rounds, ours_once)
    ours = speed(size, taken)
    yield _row(measure, "divingbell", ours, rounds)
    for peer in PEERS:
        try:
            _, seconds = asked(peer, texts, install)
        except Unable as error:
            yield table.Row(measure, peer, f"– ({error})")
            continue
        theirs = size / seconds / 1e6
        times = ours / theirs
        target = table.at_least(times, TIMES_PRESIDIO) if peer == "presidio" else ""
        yield _row(measure, peer, theirs, 1, target=target, ratio=f"ours is {times:.0f}×")


def through_serve(quick: bool) -> list[table.Row]:
    if quick:
        return asyncio.run(private_serving(["off", "personal"], 1, 1, 5))
    return asyncio.run(private_serving(list(WORDS), 4, 6, 10))


def profiled(name: str, scanner: Scanner, texts: Sequence[str]) -> None:
    def look() -> None:
        for text in texts:
            scanner.finds(text)

    look()
    profile = cProfile.Profile(time.process_time)
    profile.runcall(look)
    print(f"\n{name}:")
    pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--no-install", action="store_true", help="only peers that are installed")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--missed", action="store_true", help="list what is lost and what is false")
    parser.add_argument("--tuned", action="store_true", help="the half that was tuned on")
    parser.add_argument("--held-out", action="store_true", help="with --missed: of that set")
    parser.add_argument("--serve", action="store_true", help="only what it costs through serve")
    given = parser.parse_args()
    install, quick = not given.no_install, given.quick
    if given.serve:
        print(f"{table.render(through_serve(quick))}\n\n{table.heading()}")
        return
    texts = {
        "code": personal_data.code(),
        "logs": personal_data.logs(2_000 if quick else 10_000),
        "tables": personal_data.tables(5_000 if quick else 20_000),
    }
    times, rounds = (60, 3) if quick else (500, 9)
    samples = [
        sample
        for sample in (
            *personal_data.research()[:: 5 if quick else 1],
            *personal_data.filled(times),
            *personal_data.look_alikes(times),
        )
        if sample.is_held_out != given.tuned
    ]
    if given.missed:
        if given.held_out:
            samples = held_out(times, given.tuned, install)
        scanner = Scanner(KINDS)
        print("\n".join(missed(samples, [scanner.finds(sample.text) for sample in samples])))
        return
    sentences = [sample.text for sample in samples][: 400 if quick else 4_000]
    if given.profile:
        for name, text in texts.items():
            profiled(name, Scanner(KINDS), [text])
        lines = personal_data.customers(2_000 if quick else 20_000)
        profiled("e-mail and telephone in every line", Scanner(KINDS), [lines])
        profiled("sentences, the kinds of peers", Scanner(COMPARED), sentences)
        return
    pages = [
        texts["code"][at : at + 20_000] for at in range(0, 40_000 if quick else 200_000, 20_000)
    ]
    rows = [
        *on_held_out(times, given.tuned, install),
        *accuracy(samples, install),
        *learned_again(200 if quick else 5_000),
        *on_clean_texts(texts, rounds),
        *with_values(2_000 if quick else 20_000, 5_000 if quick else MOST_VALUES, rounds),
        *in_pieces(1_300 if quick else 13_000, rounds),
        *numbers_of_others(install),
        *beside_peers("same kinds: sentences", sentences, install, rounds),
        *beside_peers("same kinds: pages of code", pages, install, rounds),
        *through_serve(quick),
    ]
    half = "that was tuned on" if given.tuned else "that was read, and not tuned on"
    where = "with" if personal_data.folder() else "without"
    print(f"{len(samples)} sentences, of the half {half}; {where} the set of presidio-research\n")
    print(table.render(rows))
    print()
    print(table.aligned([("a value that is written", "is"), *transformed.lines()]))
    print(f"\n{table.heading()}")


if __name__ == "__main__":
    main()
