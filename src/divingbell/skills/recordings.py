"""Recordings: what the calls of each session have returned, for examples that are tried later.

They are in memory, bounded, and gone with their session. What is kept are the bytes that went into
the sandbox and back, which were there already; nothing is parsed or copied before an example is
tried.
"""

from collections import OrderedDict
from typing import NamedTuple

from divingbell.journal.events import CallEnded, SessionEnded

MAX_CALLS = 500
MAX_BYTES = 2 << 20
"""Of one session; the oldest go first."""
MAX_CALL = 256 << 10
"""Bytes of a call that is kept, arguments and result together."""
MAX_SESSIONS = 1_000
"""Sessions of which something is kept; those that were recorded least recently go first."""
MAX_ALL = 64 << 20
"""Bytes of all sessions together."""
_RESOURCE = "read_resource"
_OWN = frozenset({"save_skill", "load_skill", "search_skills", "await_server"})
"""Questions that an example gets other answers to."""


class Recorded(NamedTuple):
    """A call that has succeeded."""

    name: str
    """`server.tool`, or the name of a question."""
    arguments: bytes
    answer: bytes
    kind: str
    """The kind of value that the answer is the form of."""

    @property
    def size(self) -> int:
        return len(self.arguments) + len(self.answer)


class _Session:
    def __init__(self) -> None:
        self.calls: OrderedDict[tuple[str, bytes], Recorded] = OrderedDict()
        self.size = 0

    def add(self, call: Recorded) -> int:
        """Keep a call; return by how many bytes there are more."""
        before, key = self.size, (call.name, call.arguments)
        self._drop(self.calls.pop(key, None))
        self.calls[key] = call
        self.size += call.size
        while self.size > MAX_BYTES or len(self.calls) > MAX_CALLS:
            self._drop(self.calls.popitem(last=False)[1])
        return self.size - before

    def _drop(self, call: Recorded | None) -> None:
        self.size -= call.size if call is not None else 0


class Recordings:
    """The calls of all sessions, by the sessions' keys. It watches the journal."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def size(self) -> int:
        """The bytes of all."""
        return self._size

    def take(self, event: object) -> None:
        """Keep what a call of code has returned; forget a session that has ended."""
        if isinstance(event, CallEnded):
            self._take_call(event)
        elif isinstance(event, SessionEnded):
            self._forget(event.key)

    def _take_call(self, event: CallEnded) -> None:
        if event.by != "code" or event.outcome != "ok" or event.name in _OWN:
            return
        # What a question has led to has no bytes of its own: the question has.
        if not event.raw or not event.body or len(event.raw) + len(event.body) > MAX_CALL:
            return
        session = self._sessions.get(event.key)
        if session is None:
            session = self._sessions[event.key] = _Session()
        self._sessions.move_to_end(event.key)
        kind = "tool" if event.kind == "tool" else "value"
        kind = "resource" if event.name == _RESOURCE else kind
        self._size += session.add(Recorded(event.name, event.raw, event.body, kind))
        while self._size > MAX_ALL or len(self._sessions) > MAX_SESSIONS:
            self._forget(next(iter(self._sessions)))

    def _forget(self, key: str) -> None:
        session = self._sessions.pop(key, None)
        self._size -= 0 if session is None else session.size

    def of(self, key: str) -> list[Recorded]:
        """Return what a session's calls have returned; of equal calls the last."""
        session = self._sessions.get(key)
        return [] if session is None else list(session.calls.values())
