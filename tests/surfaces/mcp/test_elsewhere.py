"""A session that lives elsewhere: those who run code use its interface, and nothing else."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp import Client

from divingbell import CommandEvent, Divingbell
from divingbell.models import (
    Completion,
    Consumption,
    Event,
    FileInfo,
    Isolation,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.session.base import CommandHandle, FilesHandle, OpenFileHandle, SessionHandle
from divingbell.session.session import Session
from divingbell.session.source import Source
from divingbell.surfaces.mcp.server import Surface
from tests.surfaces.mcp.conftest import Era, text_of


class FilesElsewhere(FilesHandle):
    def __init__(self, files: FilesHandle) -> None:
        self._files = files

    async def put(self, path: str, data: Source) -> int:
        return await self._files.put(path, data)

    async def get(self, path: str, *, most: int | None = None) -> bytes:
        return await self._files.get(path, most=most)

    def stream(self, path: str, *, most: int | None = None) -> AsyncGenerator[bytes, None]:
        return self._files.stream(path, most=most)

    async def list(self, path: str = "") -> list[FileInfo]:
        return await self._files.list(path)

    async def open(self, path: Any, *, most: int | None = None) -> OpenFileHandle:
        return await self._files.open(path, most=most)

    async def stat(self, path: Any) -> FileInfo:
        return await self._files.stat(path)

    async def remove(self, path: str) -> None:
        await self._files.remove(path)


class Elsewhere(SessionHandle):
    """Has what the interface says and not a name more, as a session over a line would."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.id, self.limits = session.id, session.limits
        self.files = FilesElsewhere(session.files)

    @property
    def cells(self) -> int:
        return self._session.cells

    @property
    def principal(self) -> Principal:
        return self._session.principal

    @property
    def key(self) -> str:
        return self._session.key

    @property
    def isolation(self) -> Isolation:
        return self._session.isolation

    @property
    def opened_at(self) -> float:
        return self._session.opened_at

    @property
    def expires_at(self) -> float | None:
        return self._session.expires_at

    def consumption(self) -> Consumption:
        return self._session.consumption()

    @property
    def busy(self) -> bool:
        return self._session.busy

    @property
    def closed(self) -> bool:
        return self._session.closed

    async def run(self, code: str, **options: Any) -> Result:
        return await self._session.run(code, **options)

    def stream(self, code: str, **options: Any) -> AsyncGenerator[Event, None]:
        return self._session.stream(code, **options)

    async def command(self, command: Any, **options: Any) -> Any:
        return await self._session.command(command, **options)

    def command_stream(self, command: Any, **options: Any) -> AsyncGenerator[CommandEvent, None]:
        return self._session.command_stream(command, **options)

    def commands(self) -> list[CommandHandle]:
        return self._session.commands()

    async def interrupt(self) -> bool:
        return await self._session.interrupt()

    async def reset(self) -> None:
        await self._session.reset()

    async def variables(self) -> list[Variable]:
        return await self._session.variables()

    async def set(self, name: str, value: Any, **options: Any) -> None:
        await self._session.set(name, value, **options)

    async def get(self, name: str, **options: Any) -> Any:
        return await self._session.get(name, **options)

    async def complete(self, code: str, position: int) -> list[Completion]:
        return await self._session.complete(code, position)

    async def reveal(self, text: str) -> str:
        return await self._session.reveal(text)

    async def close(self, reason: str = "it was closed") -> None:
        await self._session.close(reason)


class BellElsewhere(Divingbell):
    async def _open_for(self, id: str, principal: Principal, *more: Any) -> SessionHandle:
        return Elsewhere(await super()._open_for(id, principal, *more))


async def test_a_client_works_with_a_session_that_lives_elsewhere(era: Era) -> None:
    async with BellElsewhere(pool=0) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:

            async def execute(code: str) -> str:
                return text_of(await client.call_tool("execute_python", {"code": code}))

            assert "2" in await execute("x = 1\nopen('a.txt', 'w').write('hello')\nx + 1")
            assert "1" in await execute("print(x)")
            [file] = (await client.list_resources()).resources
            assert "hello" in (await client.read_resource(file.uri)).model_dump_json()
            assert "2 cells" in text_of(await client.call_tool("list_sessions", {}))
            assert "has ended" in text_of(await client.call_tool("close_session", {}))
        await surface.close()


def test_a_session_of_this_process_is_one_of_them() -> None:
    assert issubclass(Session, SessionHandle)
    with pytest.raises(TypeError, match="abstract"):
        SessionHandle()  # type: ignore[abstract]
