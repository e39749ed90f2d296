"""The link of a front to one node: its line, laid again where it broke, and what comes down it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from divingbell import logs
from divingbell.errors import ConfigError, DivingbellError
from divingbell.gateway.catalog.folder import Folder, digest_of
from divingbell.models import Isolation, Limits
from divingbell.scale import forms, greeting
from divingbell.scale.cluster import Cluster, NodeAddress
from divingbell.scale.line import Line, LineLost, Message, NobodyListens, Stream
from divingbell.scale.requests import NEVER
from divingbell.scale.state import SessionState
from divingbell.session.cancelling import see_through
from divingbell.session.intake import field_of
from divingbell.session.options import SessionOptions
from divingbell_inside import frames

log = logs.logger("divingbell")

AGAIN_WITHIN = 1.0
"""Seconds within which a line that broke is laid again, or the node is given up."""
PAUSE = 0.05
GIVE_BACK_PATIENCE = 10.0
"""Seconds that a node may take to let go of a session that nobody waits for any more."""
Value = TypeVar("Value")


class Reached(Protocol):
    """A session of this front, as the link sees it."""

    def take_state(self, state: SessionState) -> None: ...

    def ended_there(self, reason: str) -> None:
        """Hear that the session has ended on its node."""

    def called(self, stream: Stream, message: Message) -> None:
        """Take a call of a tool that its code makes."""


class Opened(NamedTuple):
    """What a node says of a session that was opened or joined on it."""

    key: str
    made: bool
    """Whether it was made, and is empty."""
    limits: Limits
    isolation: Isolation
    labels: Mapping[str, str]
    idle_timeout: float
    opened_at: float
    state: SessionState
    unheard: tuple[int, str] | None
    """A cell whose front has gone, with its code: nobody has heard how it ended."""


class Link:
    """One node, as a front reaches it."""

    def __init__(
        self,
        node: NodeAddress,
        cluster: Cluster,
        servers: Folder,
        on_given_up: Callable[["Link"], None],
    ) -> None:
        self.node = node
        self.sessions: dict[str, Reached] = {}
        self._cluster = cluster
        self._servers = servers
        self._pushed = 0
        self._pushing = asyncio.Lock()
        self._laying = asyncio.Lock()
        self._on_given_up = on_given_up
        self._line: Line | None = None
        self._again: asyncio.Task[bool] | None = None
        self.given_up: str | None = None
        """Why, once it is."""

    @property
    def line(self) -> Line:
        """The line as it is now.

        Raises:
            LineLost: there is none.
        """
        if self._line is None or self._line.lost is not None:
            raise LineLost(self.given_up or f"the line to the node {self.node.name} broke")
        return self._line

    async def lay(self) -> Line:
        """Return the line, laid if need be.

        Raises:
            LineLost: the node can't be reached.
            ConfigError: it has other versions.
        """
        async with self._laying:
            if self._line is not None and self._line.lost is None:
                return self._line
            line = Line(f"the node {self.node.name}", opens_odd=True)
            await greeting.call(self.node, line, {}, self._cluster.tls)
            line.on_request, line.on_word, line.on_lost = self._asked, self._heard, self._lost
            self._pushed = 0
            self._line = line
            if line.lost is not None:
                raise LineLost(line.lost)
        await self.push_servers()
        return line

    async def again(self) -> bool:
        """Return whether a line that broke was laid again; if not, the node is given up."""
        if self._again is not None:
            return await asyncio.shield(self._again)
        return self.given_up is None and self._line is not None and self._line.lost is None

    def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        if self._line is not None:
            self._line.on_lost = lambda line, reason: None
            self._line.close()

    # What comes down the line

    def _asked(self, line: Line, stream: Stream, message: Message) -> None:
        session = self.sessions.get(field_of(message.header, "key", str, ""))
        if message.header.get("op") != "call" or session is None:
            stream.fail(DivingbellError("nobody here answers that"))
        else:
            session.called(stream, message)

    def _heard(self, line: Line, message: Message) -> None:
        session = self.sessions.get(field_of(message.header, "key", str, ""))
        if session is None:
            return  # it was let go of just now
        match message.header.get("op"):
            case "state":
                session.take_state(forms.read(SessionState, message.header.get("state")))
            case "ended":
                session.ended_there(field_of(message.header, "reason", str, "it has ended")[:500])

    def _lost(self, line: Line, reason: str) -> None:
        self._again = asyncio.create_task(self._lay_again(reason, is_silent=line.is_silent))

    async def _lay_again(self, reason: str, *, is_silent: bool) -> bool:
        """Try for a moment whether only the line broke. A node that hangs is not waited for."""
        until = time.monotonic() + AGAIN_WITHIN
        try:
            while not is_silent and time.monotonic() < until:
                try:
                    async with asyncio.timeout(AGAIN_WITHIN):
                        await self.lay()
                    log.info("the line to the node %s broke and was laid again", self.node.name)
                    return True
                except ConfigError as error:
                    reason = str(error)
                    break
                except NobodyListens:
                    break
                except (LineLost, TimeoutError):
                    await asyncio.sleep(PAUSE)
            self.given_up = f"the node {self.node.name} was lost: {reason}"
            log.warning("%s", self.given_up)
            self._on_given_up(self)
            return False
        finally:
            if self._again is asyncio.current_task():  # the line may have broken once more
                self._again = None

    # Requests

    async def open(
        self,
        user: str,
        id: str,
        key: str,
        number: int,
        limits: Mapping[str, Any],
        options: SessionOptions,
    ) -> Opened | None:
        """Open or join a session there; None where it is to be placed again.

        Raises:
            LineLost: the node can't be reached.
            CapacityError, SandboxUnavailable: it has no place, or can't make a sandbox.
            ConfigError: a limit can't be used.
        """
        line = await self.lay()
        idle = options.idle_timeout
        sizes, body = forms.written(
            {
                "limits": {name: value for name, value in limits.items() if value is not None},
                "options": {
                    "env": dict(options.env),
                    "labels": dict(options.labels),
                    "idle_timeout": NEVER if idle == float("inf") else idle,
                },
            }
        )
        request = {"op": "open", "user": user, "id": id, "key": key, "number": number, **sizes}
        stream = await line.request_with(request, body)
        try:
            header, body = await stream.receive()
        except asyncio.CancelledError:
            # Seen to its end, or else nobody would hold a session that takes a place there.
            await see_through(asyncio.create_task(_give_back(line, stream)))
            raise
        if header.get("again") is True:
            return None
        return checked(line, lambda: _opened_in(header, body))

    @property
    def is_pushed(self) -> bool:
        """Whether the node's /servers are as they are here."""
        return self._servers.generation == self._pushed

    async def push_servers(self) -> None:
        """Have the node's /servers be as it is here; what it has already is not sent."""
        if self.is_pushed:
            return
        async with self._pushing:
            generation = self._servers.generation
            if generation == self._pushed:
                return
            line = self.line
            contents = await asyncio.to_thread(self._servers.contents)
            digests = {path: digest_of(content) for path, content in contents.items()}
            sizes, body = forms.written(digests)
            stream = await line.request_with({"op": "servers", **sizes}, body)
            try:
                header, body = await stream.receive()
                missing = checked(line, lambda: _missing_in(header, body, digests))
                for path in missing:
                    await stream.send({}, contents[path])
                await stream.receive()
            except asyncio.CancelledError:
                stream.tell({"do": "cancel"})
                stream.abandon()
                raise
            self._pushed = generation


def checked(line: Line, read: Callable[[], Value]) -> Value:
    """Return what is read of an answer; who answers with something else loses the line.

    Raises:
        LineLost: it makes no sense.
    """
    try:
        return read()
    except (frames.FrameError, KeyError, TypeError, ValueError) as error:
        line.lose(f"{line.name} gave an answer that makes no sense: {error}")
        raise LineLost(f"{line.name} gave an answer that makes no sense") from None


async def _give_back(line: Line, stream: Stream) -> None:
    """Have a node open no session that nobody waits for; let go of one that it has opened."""
    stream.tell({"do": "cancel"})
    try:
        async with asyncio.timeout(GIVE_BACK_PATIENCE):
            header, _ = await stream.receive()
            key = field_of(header, "key", str)
            if key is not None and header.get("made") is True:  # else it is somebody's already
                await line.request({"op": "leave", "key": key}).receive()
    except (DivingbellError, TimeoutError):
        stream.abandon()


def _missing_in(header: frames.Header, body: bytes, digests: Mapping[str, str]) -> list[str]:
    """Return the files that a node asks for: each once, and none that was not announced."""
    missing, _ = forms.parsed(header, body)
    if type(missing) is not list or len(missing) > len(digests):
        raise frames.FrameError("files that were not announced")
    if not set(missing) <= digests.keys():
        raise frames.FrameError("files that were not announced")
    return missing


def _opened_in(header: frames.Header, body: bytes) -> Opened:
    form, _ = forms.parsed(header, body)
    key, idle = header["key"], forms.read(float, form["idle_timeout"])
    unheard = form["unheard"]
    labels = form["labels"]
    if type(key) is not str or not all(type(each) is str for each in (*labels, *labels.values())):
        raise frames.FrameError("a session without a name")
    return Opened(
        key,
        header["made"] is True,
        forms.read(Limits, form["limits"]),
        forms.read(Isolation, form["isolation"]),
        MappingProxyType(labels),
        float("inf") if idle == NEVER else idle,
        forms.read(float, form["opened_at"]),
        forms.read(SessionState, form["state"]),
        None if unheard is None else (int(unheard["cell"]), str(unheard["source"])),
    )
