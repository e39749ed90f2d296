"""Answers to the requests on lines: each has a task of its own, and may be given up."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from divingbell import logs
from divingbell.errors import DivingbellError, InvalidInput
from divingbell.scale.line import Line, LineLost, Message, Stream
from divingbell.session.intake import field_of
from divingbell_inside import frames

log = logs.logger("divingbell")

Handler = Callable[[Line, Stream, Message], Awaitable[None]]


class Answers:
    """Answers requests by their name. Before each one `first` is waited for."""

    def __init__(
        self, handlers: Mapping[str, Handler], first: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._handlers = handlers
        self._first = first
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, line: Line, stream: Stream, message: Message) -> None:
        """Begin with a request (divingbell.scale.line.OnRequest)."""
        handler = self._handlers.get(field_of(message.header, "op", str, ""))
        if handler is None:
            stream.fail(InvalidInput("nobody here is asked that"))
            return
        self._do(self._answer(handler, line, stream, message))

    def given_up(self, handler: Handler, line: Line, message: Message) -> None:
        """Hear that a request was given up by the other side; its handler was cancelled."""

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, handler: Handler, line: Line, stream: Stream, message: Message) -> None:
        running = asyncio.current_task()
        assert running is not None
        is_given_up = False

        def heard(message: Message) -> bool:
            nonlocal is_given_up
            is_given_up = message.header.get("do") == "cancel"
            return is_given_up and running.cancel()

        stream.listen(heard)
        try:
            if self._first is not None:
                await self._first()
            await handler(line, stream, message)
        except LineLost:
            return  # nobody is there to be told
        except asyncio.CancelledError:
            if not is_given_up:
                raise
            self.given_up(handler, line, message)
            stream.fail(DivingbellError("it was given up"))
        except DivingbellError as error:
            stream.fail(error)
        except (frames.FrameError, KeyError, TypeError, ValueError) as error:
            stream.fail(InvalidInput(f"the request makes no sense: {type(error).__name__}"))
            log.warning("a front asked for what makes no sense", exc_info=error)
        except Exception:  # a fault of ours: all else goes on
            log.exception("a request of a front failed")
            stream.fail(DivingbellError("it failed there; the log of that process says why"))
