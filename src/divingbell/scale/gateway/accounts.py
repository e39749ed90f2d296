"""The accounts of all replicas: what sessions and users have used, what people have said, and which
conversations have whose data.

What belongs to a session is kept for as long as a replica has it, and afterwards for as long as the
session may go on without one.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.policy.approvals import Kind
from divingbell.gateway.policy.meter import Meter
from divingbell.scale import forms
from divingbell.scale.answers import Handler
from divingbell.scale.gateway.common_labels import CommonLabels
from divingbell.scale.line import Line, Message, Stream
from divingbell.session.intake import field_of
from divingbell.settings.config import Settings
from divingbell_inside import frames

AHEAD = 15
"""Calls of a cell that a replica may make besides the one that it asks for: a loop of calls would
else wait for one more answer each time."""
NEAR = 32
"""The part of what is left of a budget that is given ahead: near its end nothing is."""
MOST_KINDS = 1_000
"""Answers of one session that hold until it ends; a person has given each of them."""


class Accounts:
    """Keeps the accounts, and answers replicas that ask for them."""

    def __init__(self, settings: Settings, lines: Callable[[], Iterable[Line]]) -> None:
        """`lines` are those of all replicas."""
        self._labels = CommonLabels(settings.policy.flow, lines, self._labelled)
        self.handlers: Mapping[str, Handler] = {
            "reserve": self._reserve,
            "holds": self._holds,
            "remember": self._remember,
            "copy_labels": self._labels.copy,
            "labels": self._labels.change,
            "leave": self._labels.leave,
        }
        self._meter = Meter(settings.policy)
        self._remembered: dict[str, set[Kind]] = {}
        self._kept_for = settings.idle_timeout
        self._ahead: dict[tuple[str, Line], tuple[str, int, int]] = {}
        """By session and replica the user, the cell, and how many calls were given ahead."""
        self._lines: dict[str, set[Line]] = {}
        """By the key of a session, the replicas that have it."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._forgetting: set[asyncio.Task[None]] = set()

    def used(self, session: str) -> int:
        """Return how many calls of a session are counted, with those that are given ahead."""
        return self._meter.used(session)

    def __len__(self) -> int:
        """The number of sessions that are known."""
        return len(self._lines.keys() | self._timers.keys())

    def heard(self, line: Line, message: Message) -> bool:
        """Take a word of a replica; return whether it was one about accounts."""
        key = field_of(message.header, "key", str, "")
        match message.header.get("op"):
            case "forget":
                self._let_go(key, line)
            case "unused":
                self._take_back(key, line, field_of(message.header, "count", int, 0))
            case _:
                return False
        return True

    def lost(self, line: Line) -> None:
        """Take it that a replica has gone."""
        self._labels.lost(line)
        for at in [at for at in self._ahead if at[1] is line]:
            del self._ahead[at]  # nobody knows how many were made: all count
        for key in [key for key, lines in self._lines.items() if line in lines]:
            self._let_go(key, line)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _has(self, key: str, line: Line) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._lines.setdefault(key, set()).add(line)
        if line.lost is not None:
            self._let_go(key, line)

    def _labelled(self, key: str, line: Line) -> None:
        """Keep the labels of a session, of which a replica has told that may have it no more."""
        if key not in self._lines and key not in self._timers:
            self._has(key, line)
            self._let_go(key, line)

    def _let_go(self, key: str, line: Line) -> None:
        lines = self._lines.get(key)
        if lines is None:
            return
        lines.discard(line)
        if not lines:
            del self._lines[key]
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(self._kept_for, self._forget, key)

    def _forget(self, key: str) -> None:
        self._timers.pop(key, None)
        self._remembered.pop(key, None)
        self._labels.forget(key)
        task = asyncio.create_task(self._meter.forget(key))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    # What replicas ask

    def answered(self, line: Line, stream: Stream, message: Message) -> bool:
        """Count a call at once where nothing has to be waited for; return whether it was one.

        A task of its own would cost as much as all the rest of it.
        """
        if message.header.get("op") != "reserve" or self._meter.has_rates:
            return False
        try:
            key, user, cell = _call_in(message.header)
            self._has(key, line)
            self._meter.count(key, user, cell)
            ahead = self._give_ahead(key, user, cell, line)
        except ToolFailed as error:
            stream.finish({"failed": error.code, "used": self._meter.used(key)}, _words(error))
        except (frames.FrameError, KeyError):
            stream.fail(InvalidInput("the request makes no sense"))
        else:
            stream.finish({"used": self._meter.used(key), "ahead": ahead})
        return True

    def _give_ahead(self, key: str, user: str, cell: int, line: Line) -> int:
        """Count calls that have yet to be asked for, and return how many."""
        room = self._meter.room(key, user, cell)
        ahead = AHEAD if room is None else min(AHEAD, room // NEAR)
        if not cell or not ahead:  # between cells nothing would end it
            return 0
        for _ in range(ahead):
            self._meter.count(key, user, cell)
        *whose, before = self._ahead.get((key, line), ("", 0, 0))
        more = before if whose == [user, cell] else 0  # of calls at once several have asked
        self._ahead[key, line] = user, cell, more + ahead
        return ahead

    def _take_back(self, key: str, line: Line, count: int) -> None:
        user, cell, ahead = self._ahead.pop((key, line), ("", 0, 0))
        if 0 < count <= ahead:
            self._meter.release(key, user, cell, count)
            if ahead > count:
                self._ahead[key, line] = user, cell, ahead - count

    async def _reserve(self, line: Line, stream: Stream, message: Message) -> None:
        key, user, cell = _call_in(message.header)
        self._has(key, line)
        try:
            await self._meter.reserve(key, user, cell)
        except ToolFailed as error:
            stream.finish({"failed": error.code, "used": self._meter.used(key)}, _words(error))
        else:
            stream.finish({"used": self._meter.used(key)})

    async def _holds(self, line: Line, stream: Stream, message: Message) -> None:
        kind = _kind_in(message)
        self._has(kind[0], line)
        stream.finish({"holds": kind in self._remembered.get(kind[0], ())})

    async def _remember(self, line: Line, stream: Stream, message: Message) -> None:
        kind = _kind_in(message)
        self._has(kind[0], line)
        known = self._remembered.setdefault(kind[0], set())
        if len(known) < MOST_KINDS:
            known.add(kind)
        stream.finish({})


def _call_in(header: frames.Header) -> tuple[str, str, int]:
    key, user, cell = header["key"], header["user"], header["cell"]
    if not (type(key) is str and type(user) is str and type(cell) is int):
        raise frames.FrameError("a call of nobody")
    return key, user, cell


def _words(error: ToolFailed) -> bytes:
    return str(error).encode("utf-8", "replace")


def form_of(kind: Kind) -> tuple[frames.Header, bytes]:
    """Return a kind of approval as it goes over the line."""
    sizes, body = forms.written(list(kind))
    return dict(sizes), body


def _kind_in(message: Message) -> Kind:
    form, _ = forms.parsed(message.header, message.body)
    key, tool, rule, flows, definition = form
    texts = all(type(each) is str for each in (key, tool, definition))
    numbers = all(type(each) is int for each in (*flows, *([] if rule is None else [rule])))
    if not (texts and numbers):
        raise frames.FrameError("an approval of nothing")
    return key, tool, rule, tuple(flows), definition
