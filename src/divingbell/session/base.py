"""The interface of a session, for everyone who runs code in one, wherever it lives.

Nothing here passes a descriptor or a path of the host, so a session may live in another process.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from divingbell.gateway.context import Asker
from divingbell.models import (
    Completion,
    DataFormat,
    Event,
    FileInfo,
    FrameLibrary,
    Isolation,
    Limits,
    Result,
    Variable,
)
from divingbell.principal import Principal

Source = bytes | bytearray | str | Path | BinaryIO | AsyncIterator[bytes]
"""The kinds of content that a file can be made from. A path is one of the host."""


class FilesHandle(ABC):
    """The files below /workspace."""

    @abstractmethod
    async def put(self, path: str, data: Source) -> int:
        """Store a file, making folders as needed; return its size.

        `data` is bytes, text, a pathlib.Path of the host, an open binary file, or an
        asynchronous iterator of bytes; the last three are streamed. The file appears under its
        name only when it is complete.

        Raises:
            FileRefused: the path is not below the workspace, or the disk is full.
        """

    @abstractmethod
    async def get(self, path: str, *, most: int | None = None) -> bytes:
        """Return the content of a file of at most `most` bytes (the disk limit by default).

        Raises:
            FileRefused: there is no such regular file, or it is larger.
        """

    @abstractmethod
    def stream(self, path: str, *, most: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file in pieces; see `get`."""

    @abstractmethod
    async def list(self, path: str = "") -> list[FileInfo]:
        """Return the regular files below a folder, sorted by path. Links are left out."""

    @abstractmethod
    async def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            FileRefused: there is no such file.
        """


class SessionHandle(ABC):
    """A session: cells run in it one after another, in the order in which they were asked for."""

    id: str
    """As its owner knows it."""
    limits: Limits
    files: FilesHandle

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of cells that have been run."""

    @property
    @abstractmethod
    def principal(self) -> Principal:
        """The principal on whose behalf it runs."""

    @property
    def user(self) -> str | None:
        """The user whose session it is; None where nobody was named."""
        return self.principal.user or None

    @property
    @abstractmethod
    def key(self) -> str:
        """A name that no other session has: of no other user, and no later one of its id."""

    @property
    @abstractmethod
    def isolation(self) -> Isolation:
        """The walls and limits that are in force around this session."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a cell runs, or something else that others wait for."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether it has ended."""

    @abstractmethod
    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> Result:
        """Run a cell and return its result.

        Whatever the code does is told by the result. Cancelling this call interrupts the cell.
        `argv` is `sys.argv` from now on; where its first is a file inside, that is `__file__`.
        `asker` reaches the person who may be asked about calls of tools.

        Raises:
            SessionClosed: the session has ended.
            InvalidInput: the code is no text or too long, or a context value is not plain data.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
            NotRecorded: it could not be written down that the code runs, so it was not run.
        """

    @abstractmethod
    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Takes and raises what `run` does.
        """

    @abstractmethod
    async def interrupt(self) -> bool:
        """Stop the cell that is running; its result has the status `cancelled`.

        Returns:
            Whether one was running.
        """

    @abstractmethod
    async def reset(self) -> None:
        """Forget every variable. Files in the workspace stay."""

    @abstractmethod
    async def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them.

        Raises:
            DivingbellError: looking at one of them did not end; the interpreter was replaced.
        """

    @abstractmethod
    async def set(self, name: str, value: Any, *, format: DataFormat | None = None) -> None:
        """Make a variable of a value: plain data, a numpy array, a DataFrame or a Series.

        Frames are those of pandas and polars; one of polars becomes one of pandas where the session
        has no polars. With a `format` the value is the content of such a file (bytes, or a
        pathlib.Path of the host), and the variable is a DataFrame of pandas. Waits in the same
        queue as `run`.

        Raises:
            InvalidInput: the name can't be one of a variable, the value can't be passed, or it does
                not fit the session's disk or memory; nothing was changed.
            FileRefused: the session's disk is full.
            DivingbellError: the interpreter did not answer, and was replaced.
            SessionClosed: the session has ended.
        """

    @abstractmethod
    async def get(
        self,
        name: str,
        *,
        format: DataFormat | None = None,
        frame: FrameLibrary | None = None,
        most: int | None = None,
    ) -> Any:
        """Return the value of a variable: plain data, a numpy array, a DataFrame or a Series.

        Frames are of the library `frame`; by default of pandas where that is installed here, else
        of polars. With a `format` it is a table as the bytes of such a file, which nobody has
        checked. `most` is the size of what is passed, in bytes (the disk limit by default).

        Raises:
            InvalidInput: there is no such variable, it is neither of these, or it is larger.
            FileRefused: the session's disk is full.
            DivingbellError: the interpreter did not answer, and was replaced.
            SessionClosed: the session has ended.
        """

    @abstractmethod
    async def complete(self, code: str, position: int) -> list[Completion]:
        """Say how the code could go on at that position: names, attributes, files.

        Raises:
            InvalidInput: the code is no text or too long.
            DivingbellError: looking at what is there did not end; the interpreter was replaced.
        """

    @abstractmethod
    async def close(self, reason: str = "it was closed") -> None:
        """End every process of the session and remove its workspace. May be called again."""
