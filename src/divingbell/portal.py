"""The portal: calls from ordinary code into an event loop that runs in a thread of its own.

`divingbell.sync` is made of it. Cancelling is that of asyncio: it is said once. (A portal of
anyio's says it again in every turn of the loop until the call has ended, and a cell that is being
interrupted takes a while.)
"""

import asyncio
import concurrent.futures.thread
import contextlib
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from divingbell import logs
from divingbell.errors import DivingbellError, WrongLoop
from divingbell.gateway.policy.approvals import Answer, Approval

log = logs.logger("divingbell")

ENDING_PATIENCE = 10.0
"""Seconds that a call has to end after Ctrl-C: an interrupt, its grace, and another interpreter."""

PlainApprover = Callable[[Approval], bool | str | Answer]
"""Asks one person, as an Approver does; it is called in a thread, and may be asynchronous too."""
Item = TypeVar("Item")
Mapped = TypeVar("Mapped")


class Startable(Protocol):
    """An asynchronous object that is started and closed."""

    async def start(self) -> object: ...

    async def close(self) -> None: ...


Started = TypeVar("Started", bound=Startable)


class _Call:
    """One call, which the loop begins and may be told to cancel, in this order.

    `asyncio.run_coroutine_threadsafe` is not enough: Ctrl-C may come before it has returned, and
    then nobody knows what to cancel.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None
        self.answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.ended = threading.Event()

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        if self._task is None:
            self.ended.set()  # it was never begun
        else:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            made = self._make()
            self.answer.set_result(await made if inspect.isawaitable(made) else made)
        except asyncio.CancelledError:
            self.answer.cancel()
            self.answer.set_running_or_notify_cancel()
        except BaseException as error:
            self.answer.set_exception(error)
        finally:
            self.ended.set()


class Portal:
    """An event loop in a thread. Any thread may call into it, but the loop's own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="divingbell-sync", daemon=True)
        self._thread.start()

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one that it was made in: its thread is not here."""
        return self._process != os.getpid()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_forever()

    def call(self, make: Callable[[], Any]) -> Any:
        """Call a function on the loop, and return what it returns; what it awaits is awaited.

        Ctrl-C cancels the call, waits for its end, and is raised then.

        Raises:
            DivingbellError: it can't be called from here.
        """
        self._check()
        call = _Call(make)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            return call.answer.result()
        except concurrent.futures.CancelledError:
            raise DivingbellError("the call was cancelled: the Divingbell was closed") from None
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(call.cancel)
            call.ended.wait(ENDING_PATIENCE)
            raise

    def later(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Call a function on the loop, and don't wait for it."""
        if not self.forked and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(make(), self._loop)

    def items(self, made: AsyncGenerator[Item, None]) -> Generator[Item, None, None]:
        """Yield what an asynchronous generator does; leaving it early closes that, too."""
        try:
            while True:
                try:
                    item = self.call(made.__anext__)
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if threading.current_thread() is self._thread:
                self.later(made.aclose)  # the garbage collector may run anywhere
            else:
                self.call(made.aclose)

    @contextlib.contextmanager
    def entered(self, made: AbstractAsyncContextManager[Item]) -> Iterator[Item]:
        """Enter and leave an asynchronous context manager."""
        held = self.call(made.__aenter__)
        try:
            yield held
        finally:
            self.call(lambda: made.__aexit__(None, None, None))

    def stop(self) -> None:
        """End the loop and its thread, with what still runs there. May be called again."""
        if self.forked or not self._thread.is_alive():
            return

        async def end_the_rest() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            await self._loop.shutdown_asyncgens()
            await self._loop.shutdown_default_executor()

        try:
            self.call(end_the_rest)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _check(self) -> None:
        if self.forked:
            raise WrongLoop(
                "this process was forked from the one that made this Divingbell, and has none of "
                "its threads: make another Divingbell here"
            )
        if threading.current_thread() is self._thread:
            raise DivingbellError(
                "this is called from the event loop that it would wait for: a callback that is "
                "called there must not call back; do it in a thread"
            )
        if not self._thread.is_alive():
            raise DivingbellError("this Divingbell was closed: make another one")


class _NoPortal(Portal):
    """The portal of what does not run: it refuses all calls."""

    def __init__(self) -> None:
        """Start nothing."""

    def _check(self) -> None:
        raise DivingbellError(
            "Divingbell is not running: use `with Divingbell() as bell`, or `bell.start()`"
        )


NO_PORTAL = _NoPortal()


class Face(Generic[Mapped]):
    """The plain face of an asynchronous object: the same names, without `await`.

    The faces of what it hands out are made by `faces`, which maps classes to theirs.
    """

    faces: ClassVar[dict[type[Any], type["Face[Any]"]]] = {}

    def __init__(self, portal: Portal, of: Mapped) -> None:
        self._portal = portal
        self._of = of

    def _call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        plain = [each._of if isinstance(each, Face) else each for each in given]
        return self._face(self._portal.call(lambda: method(*plain, **named)))

    def _face(self, value: Any) -> Any:
        """Return the face of an object that has one, and everything else as it is."""
        if type(value) is list:
            return [self._face(item) for item in value]
        face = self.faces.get(type(value))
        return value if face is None else face(self._portal, value)

    @contextlib.contextmanager
    def _entered(self, made: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        with self._portal.entered(made) as held:
            yield self._face(held)

    def __repr__(self) -> str:
        return repr(self._of)

    def _repr_html_(self) -> str | None:
        """Return it as a notebook shows it; None for what has no form of its own."""
        shown: Callable[[], str] | None = getattr(self._of, "_repr_html_", None)
        return None if shown is None else shown()


class Closable(Protocol):
    """An asynchronous iterator of bytes that is closed."""

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None: ...


Closed = TypeVar("Closed", bound=Closable)


class Iterated(Face[Closed]):
    """The face of an asynchronous iterator that is closed: an ordinary one."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        try:
            piece: bytes = self._portal.call(self._of.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None
        return piece

    def close(self) -> None:
        """Stop reading. May be called again."""
        self._portal.call(self._of.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Running(Face[Started]):
    """The face of what is started and closed, with an event loop of its own in between."""

    def __init__(self, of: Started) -> None:
        super().__init__(NO_PORTAL, of)

    def _call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        if self._portal is NO_PORTAL and not inspect.iscoroutinefunction(method):
            return method(*given, **named)  # there is no loop yet that it could disturb
        return super()._call(method, *given, **named)

    def start(self) -> Self:
        """Start it, as `with` does. What is still open when the program ends is closed then."""
        if self._portal is not NO_PORTAL:
            raise DivingbellError("this Divingbell is running already; make another one")
        self._portal = Portal()
        _open.add(self)
        try:
            self._portal.call(self._of.start)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all that it has started. May be called again."""
        portal, self._portal = self._portal, NO_PORTAL
        _open.discard(self)
        if portal is not NO_PORTAL and not portal.forked:  # what is the parent's stays
            try:
                portal.call(self._of.close)
            finally:
                portal.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


_open: set[Running[Any]] = set()
"""Those that have been started and not closed."""


def _close_all() -> None:
    for running in list(_open):
        try:
            running.close()
        except Exception:
            log.exception("a Divingbell was not closed well at the end of the program")


# Python ends its pools of threads before it calls what `atexit` knows, and closing needs them. This
# is how concurrent.futures hears of the end; what has registered last is called first.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def awaited(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return a function that can be awaited, for one that may be plain: that runs in a thread."""
    if function is None or inspect.iscoroutinefunction(function):
        return function
    plain = function

    async def call(*given: Any) -> Any:
        found = await asyncio.to_thread(plain, *given)
        return await found if inspect.isawaitable(found) else found

    return call
