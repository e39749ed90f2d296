"""The labels of all conversations, of which every replica has a copy.

So each replica decides about a call by itself; a label is new to a conversation once or twice, and
only then everybody is told. Nothing leaves for a server before all replicas know its label.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.gateway.policy.labels import Labelled, Labels
from divingbell.scale.gateway import label_forms
from divingbell.scale.gateway.asking import WHAT
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.line import Line, LineLost, Message, Stream
from divingbell.session.intake import field_of
from divingbell.settings.flows import Flow
from divingbell_inside import frames

log = logs.logger("divingbell")

PATIENCE = 5.0
"""Seconds for a replica to take labels in; one that does not may call nothing any more."""


class CommonLabels:
    """The side of the gateway: what one replica tells, all others are told."""

    def __init__(
        self,
        flows: Sequence[Flow],
        lines: Callable[[], Iterable[Line]],
        known: Callable[[str, Line], None],
    ) -> None:
        """`known` hears of each session that has labels, and whose replica has told so."""
        self.labels = Labels(flows)
        self._lines = lines
        self._known = known
        self._telling: set[asyncio.Task[None]] = set()
        self._ready: set[Line] = set()
        """Lines of replicas that have been given a copy."""

    async def copy(self, line: Line, stream: Stream, message: Message) -> None:
        """Take in what a replica knows; give it all that is known, and from now on each change."""
        self._ready.add(line)  # sooner: what is told meanwhile is told twice at worst
        await self._take(line, label_forms.read(message))
        await stream.end(*label_forms.written(self.labels.state()))

    async def change(self, line: Line, stream: Stream, message: Message) -> None:
        """Take in labels; answer once all other replicas have them."""
        await self._take(line, label_forms.read(message))
        await stream.end({})

    async def leave(self, line: Line, stream: Stream, message: Message) -> None:
        """Forget the clients of a connection that has ended."""
        connection = field_of(message.header, "connection", str, "")
        self.labels.drop_connection(connection)
        await self._tell(line, {"op": "left", "connection": connection})
        await stream.end({})

    def forget(self, session: str) -> None:
        """Forget a session that no replica has had for long."""
        self.labels.drop(session)
        task = asyncio.create_task(self._tell(None, {"op": "unlabel", "key": session}))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def lost(self, line: Line) -> None:
        self._ready.discard(line)

    async def _take(self, line: Line, told: Sequence[Labelled]) -> None:
        if not told:
            return
        for each in told:
            self.labels.take(each)
            for holder in each.holders:
                if isinstance(holder, str):
                    self._known(holder, line)
        header, body = label_forms.written(told)
        await self._tell(line, {"op": "labels", **header}, body)

    async def _tell(self, besides: Line | None, header: frames.Header, body: bytes = b"") -> None:
        others = [line for line in self._lines() if line in self._ready and line is not besides]
        await asyncio.gather(*(_told(line, header, body) for line in others))


async def _told(line: Line, header: frames.Header, body: bytes) -> None:
    """Tell a replica, and wait until it has taken it in; one that does not loses the line."""
    try:
        async with asyncio.timeout(PATIENCE):
            stream = await line.request_with(header, body)
            await stream.receive()
    except LineLost:
        return  # it can't call anything, and gets a copy when it is back
    except (TimeoutError, DivingbellError) as error:
        log.warning("a replica did not take in labels: %s", error)
        line.lose("it did not take in the labels of conversations")


class RemoteLabels:
    """The side of a replica (divingbell.gateway.policy.labels.SharedLabels)."""

    def __init__(self, flows: Sequence[Flow], link: GatewayLink) -> None:
        self.labels = Labels(flows, self)
        self._link = link
        self._telling: dict[asyncio.Task[None], str] = {}
        """By whose conversations they are about."""
        self._is_behind = False
        """Whether somebody was not told of something, and has had no copy since."""

    async def copied(self, line: Line) -> None:
        """Give the gateway what is known here, and take what all others know.

        Raises:
            DivingbellError: the line broke.
        """
        line.on_request = self._told
        header, body = label_forms.written(self.labels.state())
        stream = await line.request_with({"op": "copy_labels", **header}, body)
        for each in label_forms.read(await stream.receive()):
            self.labels.take(each)
        self._is_behind = False

    def tell(self, labelled: Labelled) -> None:
        header, body = label_forms.written([labelled])
        self._ask(labelled.user, {"op": "labels", **header}, body)

    def leave(self, connection: str) -> None:
        self._ask("", {"op": "leave", "connection": connection}, b"")

    async def settled(self, user: str) -> None:
        if self._telling:
            telling = [task for task, whose in self._telling.items() if whose == user]
            await asyncio.gather(*telling, return_exceptions=True)
        if self._is_behind:
            raise self._link.away(WHAT)

    def _ask(self, user: str, header: frames.Header, body: bytes) -> None:
        task = asyncio.create_task(self._asked(header, body))
        self._telling[task] = user
        task.add_done_callback(self._done)

    async def _asked(self, header: frames.Header, body: bytes) -> None:
        line = self._link.laid()
        stream = await line.request_with(header, body)
        await stream.receive()

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._telling[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._is_behind = True
            # It is told again with the copy that is given when the line is laid anew.
            log.info("the shared gateway was not told of a label: %s", error)

    def _told(self, line: Line, stream: Stream, message: Message) -> None:
        """Take what other replicas have told (divingbell.scale.line.OnRequest)."""
        match message.header.get("op"):
            case "labels":
                for each in label_forms.read(message):
                    self.labels.take(each)
            case "unlabel":
                self.labels.drop(field_of(message.header, "key", str, ""))
            case "left":
                self.labels.drop_connection(field_of(message.header, "connection", str, ""))
            case _:
                raise frames.FrameError("a replica is not asked that")
        stream.finish({})
