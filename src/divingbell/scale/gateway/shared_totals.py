"""The sums of ledgers of all replicas: a file of the gateway's machine."""

import asyncio
from collections import deque
from typing import Any

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.host import places
from divingbell.journal import totals
from divingbell.journal.events import AnswerEnded
from divingbell.journal.serve_arm_totals import Used
from divingbell.journal.totals import MOST_WAITING, Counted, Totals
from divingbell.models import Ledger
from divingbell.scale import forms
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.line import Line, Message, Stream
from divingbell_inside import frames

log = logs.logger("divingbell.journal")

AT_ONCE = 100
"""Ledgers in one message."""
CLOSE_TIMEOUT = 5.0
"""Seconds that the end waits for the last of them to be taken."""
_KINDS: dict[str, Any] = {"ledger": Ledger, "used": Used}


class TotalsKeeper:
    """The side of the gateway."""

    def __init__(self) -> None:
        self._totals = Totals(places.data_folder() / totals.FILE_NAME)

    async def count(self, line: Line, stream: Stream, message: Message) -> None:
        form, _ = forms.parsed(message.header, message.body)
        rows = [_row_in(*each) for each in form]
        for user, counted in rows:
            self._totals.record(counted, user)
        stream.finish({})

    async def stop(self) -> None:
        await self._totals.close()


class RemoteTotals:
    """The side of a replica. It never fails, it logs."""

    def __init__(self, link: GatewayLink) -> None:
        self._link = link
        self._waiting: deque[tuple[Counted, str]] = deque()
        self._telling: asyncio.Task[None] | None = None

    def count(self, counted: Counted, user: str) -> None:
        """Have something added to the totals; returns at once."""
        if isinstance(counted, AnswerEnded) or len(self._waiting) >= MOST_WAITING:
            log.warning("the tokens of an execution are not added to the totals")
            return
        self._waiting.append((counted, user))
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def close(self) -> None:
        """Have the gateway take what waits, for a limited time."""
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=CLOSE_TIMEOUT)
            self._telling.cancel()

    async def _tell(self) -> None:
        while self._waiting:
            line = await self._link.until_laid()
            count = min(len(self._waiting), AT_ONCE)
            rows = [_form_of(*self._waiting.popleft()) for _ in range(count)]
            sizes, body = forms.written(rows)
            try:
                stream = await line.request_with({"op": "count", **sizes}, body)
                await stream.receive()
            except DivingbellError as error:
                log.warning("the tokens of %d executions may be in no total: %s", count, error)


def _form_of(counted: Counted, user: str) -> list[Any]:
    if counted is None:
        return [user, "refused", {}]
    kind = "used" if isinstance(counted, Used) else "ledger"
    return [user, kind, forms.of(counted)]


def _row_in(user: Any, kind: Any, form: Any) -> tuple[str, Counted]:
    if type(user) is not str:
        raise frames.FrameError("a ledger of nobody")
    if kind == "refused":
        return user, None
    counted: Counted = forms.read(_KINDS[kind], form)
    return user, counted
