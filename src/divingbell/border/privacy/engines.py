"""Engines that look for many expressions in one pass, in time that grows with the text alone.

Neither knows what stands around a match; both are told what may, and shapes look closer. They
read UTF-8 byte by byte, and `.` is one byte.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from divingbell.border.privacy import compiled
from divingbell.errors import ConfigError

Hit = tuple[int, int, int]
"""The number of a gate, and where its match starts and ends. Only those that ask for it know where
it starts. There may be millions, so that it is a bare tuple."""


@dataclass(frozen=True, slots=True)
class Gate:
    """An expression without look-around, in the syntax that Hyperscan and RE2 share."""

    expression: str
    has_start: bool = False
    """Whether hits must say where they start. Hyperscan takes longer then."""


class Engine(Protocol):
    """Finds the matches of its expressions. May be used by several threads at once."""

    def hits(self, data: bytes) -> list[Hit]:
        """Return at least one hit for each stretch of overlapping matches of a gate."""


class HyperscanEngine:
    """Hyperscan: reports each place where an expression ends, once. It lets other threads run."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        import hyperscan

        self._scratch = threading.local()
        self._new_scratch = hyperscan.Scratch
        self._database = compiled.kept_or_made(repr(gates), lambda: self._compiled(gates))

    @staticmethod
    def _compiled(gates: Sequence[Gate]) -> Any:
        import hyperscan

        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        leftmost = hyperscan.HS_FLAG_SOM_LEFTMOST
        try:
            database.compile(
                [gate.expression.encode() for gate in gates],
                ids=list(range(len(gates))),
                elements=len(gates),
                flags=[leftmost if gate.has_start else 0 for gate in gates],
            )
        except hyperscan.error as error:
            raise _unusable(error) from error
        return database

    def hits(self, data: bytes) -> list[Hit]:
        """Return all hits, by where they end."""
        found: list[Hit] = []

        def take(gate: int, start: int, end: int, flags: int, context: object) -> None:
            found.append((gate, start, end))

        self._database.scan(data, match_event_handler=take, scratch=self._scratch_of_thread())
        return found

    def _scratch_of_thread(self) -> Any:
        # Scratch space that two threads use at once is an error, and scanning releases the lock of
        # the interpreter.
        try:
            return self._scratch.space
        except AttributeError:
            self._scratch.space = self._new_scratch(self._database)
            return self._scratch.space


class Re2Engine:
    """RE2: says first which expressions match at all, then looks for each of those."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        import re2  # type: ignore[import-untyped]

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        self._which = re2.Set.SearchSet(options)
        self._expressions = []
        try:
            for gate in gates:
                expression = gate.expression.encode()
                self._expressions.append(re2.compile(expression, options))
                self._which.Add(expression)
        except re2.error as error:
            raise _unusable(error) from error
        self._which.Compile()

    def hits(self, data: bytes) -> list[Hit]:
        """Return the hits of each gate that do not overlap, by where they end."""
        found = [
            (gate, match.start(), match.end())
            for gate in self._which.Match(data) or ()  # None if nothing matches
            for match in self._expressions[gate].finditer(data)
        ]
        return sorted(found, key=lambda hit: hit[2])


def _unusable(error: Exception) -> ConfigError:
    return ConfigError(
        f"A pattern for what is to be found can't be used: {error}. "
        "Write it without look-around, back-references and empty matches."
    )


ENGINES: tuple[Callable[[Sequence[Gate]], Engine], ...] = (HyperscanEngine, Re2Engine)


@functools.lru_cache(16)
def engine(gates: tuple[Gate, ...]) -> Engine:
    """Return an engine for these gates. Making one takes long, so that equal ones are shared.

    Raises:
        ConfigError: no engine is installed, or an expression is not one that it knows.
    """
    for made in ENGINES:
        try:
            return made(gates)
        except ImportError:
            continue
    raise ConfigError(
        "Nothing is installed that finds secrets and personal data: "
        "`pip install hyperscan`, or `pip install google-re2` where that does not run."
    )
