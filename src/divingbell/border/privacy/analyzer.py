"""An analyzer that the user brings: presidio-analyzer with a model of names and places."""

import importlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from typing import Protocol

from divingbell import logs
from divingbell.border.privacy.find import Find
from divingbell.errors import ConfigError
from divingbell.settings.kinds import VALUE

log = logs.logger("divingbell")

KINDS_OF_ENTITIES = {"PERSON": "NAME", "LOCATION": "ADDRESS"}
"""What has no shape. The rest of what Presidio knows is left to the shapes: of its telephone
numbers in the held-out set 61 in 100 are right."""
PIECE = 10_000
"""Characters that are analysed at once; a model takes memory in proportion to them."""
OVERLAP = 200
"""Characters that two pieces share, so that a name is whole in one of them."""
MOST = 1_000_000
"""Characters of one text; what is over is held back."""
SECONDS, SECONDS_PER_CHARACTER, MOST_SECONDS = 1.0, 0.000_05, 10.0
"""For one text, with the wait for others before it; what is not done by then is held back. Without
a model Presidio takes 0.7 ms for a short text, and 1.4 ms for 1,000 characters."""
STEP = 0.002
"""Seconds of a wait, after which others may run."""
MOST_KEPT = 64
"""Answers for texts of up to a piece that are kept: a result is looked at several times."""
INSTALL = "pip install 'divingbell[presidio]'"
LONGEST_MACHINES = 100
_WORD = re.compile(r"[^\W\d_]{2}")
_LINE = re.compile(r"[^\s](?:[^\n]*[^\s])?")
_MACHINES = re.compile(rf"[a-z0-9_][\w./:+-]{{0,{LONGEST_MACHINES - 1}}}(?:\n|\Z)", re.ASCII)
"""A line that is one word without a capital letter first. The parts of a result come as lines, and
`ok`, `stdout` and `text/plain` among them must stay: neither a model nor its failure hides them."""


class Result(Protocol):
    """What Presidio says of a place."""

    start: int
    end: int
    entity_type: str


class Engine(Protocol):
    """What is needed of an AnalyzerEngine."""

    @property
    def supported_languages(self) -> Sequence[str]:
        """Return the languages that it is asked in."""

    def get_supported_entities(self, language: str) -> list[str]:
        """Return the names of what it can find."""

    def analyze(self, text: str, language: str, entities: list[str]) -> Iterable[Result]:
        """Return what it finds."""


class Analyzer:
    """Asks an engine for names and places, in a thread of its own and within a time.

    Where it fails, takes too long, or says what can't be, each line that it has not read is a
    find: it is held back, so that nobody reads what nobody has looked at.

    Raises:
        ConfigError: the engine finds nothing of these kinds.
    """

    def __init__(self, engine: Engine, kinds: Iterable[str]) -> None:
        wanted = {kind: kind for kind in kinds}
        wanted |= {name: kind for name, kind in KINDS_OF_ENTITIES.items() if kind in wanted}
        self._engine, self._kinds = engine, wanted
        self._entities = {
            language: sorted(wanted.keys() & set(engine.get_supported_entities(language)))
            for language in engine.supported_languages
        }
        if not any(self._entities.values()):
            raise ConfigError(
                "[privacy_rules]: analyzer: it finds nothing that is hidden here: give it a "
                f"recognizer for {' or '.join(KINDS_OF_ENTITIES)}"
            )
        self._turn = threading.Lock()
        self._late: _Reading | None = None
        """One that did not end in time. Until it has, nobody waits for another."""
        self._kept: OrderedDict[str, list[Find]] = OrderedDict()

    def finding(self, text: str) -> Generator[None, None, list[Find]]:
        """Yield while it is at work, so that an event loop can give way; return the finds."""
        if not _WORD.search(text):
            return []
        if (kept := self._kept.get(text)) is not None:
            return list(kept)
        if self._late and not self._late.done.is_set():
            return _held_back(text, 0, "it is still at work on another text")
        reading = _Reading(self, text[:MOST])
        deadline = time.monotonic() + min(MOST_SECONDS, SECONDS + SECONDS_PER_CHARACTER * len(text))
        while not reading.done.wait(STEP):
            if time.monotonic() > deadline:
                self._late = reading
                break
            yield
        found, read = reading.stopped()
        found = [find for find in found if not _is_machines(text, find)]
        if read < len(text):
            why = reading.problem or "it took too long, or the text is too long"
            return [*found, *_held_back(text, read, why)]
        if len(text) <= PIECE:
            self._kept[text] = found
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return list(found)

    def finds_in(self, text: str) -> list[Find]:
        """Return what the engine finds in a piece.

        Raises:
            ValueError: it says a place that is not there.
        """
        found = []
        for language, entities in self._entities.items():
            results = self._engine.analyze(text, language, entities) if entities else ()
            for each in results:
                if not 0 <= each.start < each.end <= len(text):
                    raise ValueError(f"it found {each.entity_type} where there is no text")
                if kind := self._kinds.get(each.entity_type):
                    found.append(Find(each.start, each.end, kind))
        return found

    @property
    def turn(self) -> threading.Lock:
        """Held by the one text that the engine reads: models are not made for several at once."""
        return self._turn


def _is_machines(text: str, find: Find) -> bool:
    """Whether the line of a find is one word that only machines write."""
    first = text.rfind("\n", max(0, find.start - LONGEST_MACHINES), find.start) + 1
    if not first and find.start > LONGEST_MACHINES:
        return False
    return bool(_MACHINES.match(text, first))


def _held_back(text: str, read: int, why: str) -> list[Find]:
    """Return finds for what has not been read, line by line."""
    # What stands last in a piece was read without what follows it.
    start = max(0, read - OVERLAP)
    log.warning(
        "%d of %d characters are held back, because the analyzer of [privacy_rules] has not read "
        "them: %s", len(text) - start, len(text), why,
    )  # fmt: skip
    lines = (Find(*line.span(), VALUE) for line in _LINE.finditer(text, start))
    return [line for line in lines if not _is_machines(text, line)]


class _Reading:
    """One text that an engine reads, piece by piece."""

    def __init__(self, analyzer: Analyzer, text: str) -> None:
        self._analyzer, self._text = analyzer, text
        self._found: list[Find] = []
        self._read = 0
        self._is_stopped = False
        self._lock = threading.Lock()
        self.problem = ""
        self.done = threading.Event()
        # No pool: one that hangs must keep nobody from leaving.
        threading.Thread(target=self._run, name="analyzer", daemon=True).start()

    def stopped(self) -> tuple[list[Find], int]:
        """Return what was found so far, and up to where all has been read; no more is read."""
        with self._lock:
            self._is_stopped = True
            return self._found, self._read

    def _run(self) -> None:
        try:
            with self._analyzer.turn:
                while self._read < len(self._text) and not self._is_stopped:
                    self._read_piece()
        except Exception as error:  # it is somebody else's code, and may raise anything
            # Not its words: they may have a value in them.
            self.problem = f"it failed with {type(error).__name__}"
        finally:
            self.done.set()

    def _read_piece(self) -> None:
        first = max(0, self._read - OVERLAP)
        piece = self._text[first : self._read + PIECE]
        finds = self._analyzer.finds_in(piece)
        with self._lock:
            if not self._is_stopped:
                self._found += [Find(first + a, first + b, kind) for a, b, kind in finds]
                self._read = min(len(self._text), self._read + PIECE)


def load(named: str, kinds: Iterable[str]) -> Analyzer:
    """Return the analyzer that settings name as `module:attribute`.

    The attribute is an AnalyzerEngine, or a function without arguments that makes one.

    Raises:
        ConfigError: there is none, or it can't be used.
    """
    module, _, attribute = named.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)
        is_engine = hasattr(made, "analyze") and not isinstance(made, type)
        engine = made if is_engine else made()
        return Analyzer(engine, kinds)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        is_ours = str(error.name).startswith("presidio")
        way = INSTALL if is_ours else "install it, or name its folder in PYTHONPATH"
        raise ConfigError(f"[privacy_rules]: analyzer {named!r}: {error}: {way}") from error
    except Exception as error:  # whatever its module raises while it is loaded
        raise ConfigError(
            f"[privacy_rules]: analyzer {named!r} can't be used: {type(error).__name__}: {error}"
        ) from error
