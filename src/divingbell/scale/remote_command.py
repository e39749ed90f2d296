"""A command that runs on a node, as the front has it."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from divingbell.command import CommandEvent, CommandResult
from divingbell.errors import DivingbellError, InvalidInput
from divingbell.models import Failure
from divingbell.scale import forms, stumbles
from divingbell.scale.line import LineLost, Message, Stream
from divingbell.scale.link import checked
from divingbell.session.commands.command import Exit, Sink
from divingbell.session.commands.live_output import LiveOutput
from divingbell.session.commands.output import StreamName, StreamOutput
from divingbell.session.outcome import StopReason

MAX_PID = 1 << 22
LOST = 137
"""The exit code of a command whose node was lost: as if it had been killed."""


class RemoteCommand:
    """One command on a node (divingbell.session.commands.handle.StartedCommand)."""

    def __init__(
        self,
        number: int,
        text: str,
        stream: Stream,
        background: bool,
        sink: Sink,
        exit: Exit,
        charge: Callable[[float], None],
        limit: int,
    ) -> None:
        self.number = number
        self.command = text
        self.is_in_background = background
        self.drawn = 0.0
        self.on_over: Callable[[CommandResult | None], None] = lambda result: None
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stream = stream
        self._sink = sink
        self._exit = exit
        self._charge = charge
        self._pid: int | None = None
        self._lost: str | None = None
        self._readers: list[LiveOutput] = []
        self._streams: dict[StreamName, StreamOutput] = {
            name: StreamOutput(name, limit, lambda name, data: None)
            for name in ("stdout", "stderr")
        }
        self.task = asyncio.create_task(self._live())

    @property
    def pid(self) -> int | None:
        return self._pid

    @property
    def running(self) -> bool:
        return not self.task.done()

    @property
    def exit_code(self) -> int | None:
        return None if self.running or self.task.cancelled() else self.task.result().exit_code

    def charge(self, seconds: float) -> None:
        self.drawn += seconds
        self._charge(seconds)

    def shown(self, name: StreamName) -> str:
        if not self.running and not self.task.cancelled():
            result = self.task.result()
            return result.stdout if name == "stdout" else result.stderr
        return self._exit.text(self._streams[name].text, goes_on=True)

    async def wait(self) -> CommandResult:
        return await asyncio.shield(self.task)

    async def kill(self) -> CommandResult:
        self.stop("cancelled")
        return await self.wait()

    def stop(self, reason: StopReason) -> None:
        self._stream.tell({"do": "stop", "reason": reason})

    def lose(self, reason: str) -> None:
        self._lost = reason

    async def stream(self) -> AsyncGenerator[CommandEvent, None]:
        live = LiveOutput({name: each.unfinished() for name, each in self._streams.items()})
        so_far = [CommandEvent(name, each.text) for name, each in self._streams.items()]
        passage = self._exit.passage(self.charge)
        self._readers.append(live)
        if not self.running:
            live.end()
        try:
            for event in so_far:
                for shown in await passage.event(event) if event.text else ():
                    yield shown
            async for event in live.events():
                for shown in await passage.event(event):
                    yield shown
            for shown in await passage.end():
                yield shown
            yield CommandEvent("done", result=await self.wait())
        finally:
            self._readers.remove(live)

    async def _live(self) -> CommandResult:
        result: CommandResult | None = None
        try:
            try:
                result = await self._listen()
            except LineLost as error:
                words = f"the command was lost: {self._lost or error}"
                result = CommandResult("killed", LOST, error=Failure("Killed", words))
            result = await self._finished(result)
            return result
        except DivingbellError as error:
            if not self.began.done():
                refused = error if isinstance(error, InvalidInput) else InvalidInput(str(error))
                self.began.set_exception(refused)
            words = f"the command was lost: {self._lost or error}"
            result = await self._finished(
                CommandResult("killed", LOST, error=Failure("Killed", words))
            )
            return result
        finally:
            self.on_over(result)
            for live in self._readers:
                live.end()
            if not self.began.done():
                self.began.set_result(None)

    async def _listen(self) -> CommandResult:
        line = self._stream.line
        while True:
            message = await self._stream.receive()
            pid = message.header.get("began")
            if type(pid) is int and 0 < pid < MAX_PID and not self.began.done():
                self._pid = pid
                self.began.set_result(None)
            elif message.header.get("end") is True:
                return checked(line, lambda: _result_in(message))  # noqa: B023
            elif "json" in message.header:
                self._take(checked(line, lambda: _event_in(message)))  # noqa: B023

    def _take(self, event: CommandEvent) -> None:
        if event.type == "stdout" or event.type == "stderr":
            data = event.text.encode("utf-8", "replace")
            self._streams[event.type].add(data)
            for live in self._readers:
                live.add(event.type, data)
        self._sink(event)

    async def _finished(self, result: CommandResult) -> CommandResult:
        """Return a result with what this front knows of the command, as its reader may see it."""
        from dataclasses import replace

        stumble, bare = stumbles.header_of(result)
        known = replace(bare, command=self.command, number=self.number)
        return await self._exit.result(known, dict(stumble))


def _result_in(message: Message) -> CommandResult:
    return forms.read_command_result(forms.parsed(message.header, message.body)[0])


def _event_in(message: Message) -> CommandEvent:
    return forms.read_command_event(forms.parsed(message.header, message.body, forms.LIGHT)[0])
