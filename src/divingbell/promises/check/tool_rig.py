"""A rig with tools: a Divingbell of its own, behind which stands a server that means harm."""

import asyncio
import base64
import contextlib
import json
import logging
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from divingbell import promises
from divingbell.app import Divingbell
from divingbell.gateway.policy.approvals import Approval
from divingbell.promises.check.rig import ALONE, CheckRig, expect
from divingbell.session.session import Session
from divingbell.settings.config import Settings
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Server

SERVER = Path(promises.__file__).parent / "servers" / "hostile.py"
NAME = "hostile"
NAGGING, SWELLING = "nagging", "swelling"
"""The same server twice more, to be spoilt by one check each."""
MIRROR = "mirror"
"""A server at an address, which answers everything with 401."""
REQUESTS = ("read_resource", "get_prompt", "list_resources", "list_prompts", "complete")
"""Requests to a server besides calls of its tools, as rules name them."""
POLICY = {
    "tool_timeout": 20.0,
    "calls_per_cell": 50,
    "calls_at_once": 20,
    "rules": [
        {"tools": [f"{NAME}.forbidden"], "action": "deny", "reason": "nobody may"},
        {"tools": [f"{NAME}.send"], "action": "allow", "when": {"to": "*@example.org"}},
        {"tools": [f"{NAME}.send"], "action": "deny", "reason": "not to them"},
        {"tools": [f"{NAME}.write"], "action": "deny", "when": {"copy.path": "/etc/*"}},
        {"tools": [f"{NAME}.write"], "action": "deny", "when": {"links": "/etc/*"}},
        {"tools": [f"{NAME}.write"], "action": "allow", "when": {"files[].path": "/srv/shared/*"}},
        {"tools": [f"{NAME}.write"], "action": "deny", "reason": "not there"},
        {"tools": [f"{NAME}.private"], "action": "allow", "users": ["ann"]},
        {"tools": [f"{NAME}.private"], "action": "deny"},
        {
            "tools": [f"{NAME}.{name}" for name in ("careful", "asked", "late", "shown")],
            "action": "ask",
        },
        {"tools": [f"{NAME}.{name}" for name in REQUESTS], "action": "deny", "users": ["outsider"]},
    ],
    "flow": [{"from": [f"{NAME}.dossier"], "to": [f"{NAME}.publish"], "action": "deny"}],
    "bound": {f"{NAME}.whose.owner": "{user}", f"{NAME}.lenient.owner": "{user}"},
}
"""Rules that the checks rely on. Those of whoever runs the check are not the ones to be checked."""


class Recorder(logging.Handler):
    """Keeps what is logged, to see what was flagged and that no secret is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class ToolRig(CheckRig):
    """Sessions that can call the hostile server's tools. Made with `beside`."""

    PRIVACY: Mapping[str, Any] = {"privacy": "off"}
    """The settings of privacy. Those of whoever runs the check must not matter."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        bell = Divingbell.of(settings, on_approval=self._approve, scratch=folder)
        super().__init__(bell)
        self.logs = folder / "logs"
        self.secret = f"promise-{secrets.token_hex(16)}"
        self.recorder = Recorder()
        self.asked: list[Approval] = []
        self.answer: bool | str = False
        """The answer of the person who is asked."""
        self.answers: dict[str, asyncio.Future[str]] = {}
        """Answers about single tools, when their time has come."""
        self.trapped = 0
        """Connections to an address that only a schema names."""

    @classmethod
    @contextlib.asynccontextmanager
    async def beside(cls, bell: Divingbell) -> AsyncIterator[Self]:
        """A running rig behind the same walls as `bell`. It leaves nothing behind."""
        policy = Policy.from_mapping(POLICY, "the self-check")
        settings = replace(bell.settings, pool=0, servers=(), policy=policy, **cls.PRIVACY)
        async with contextlib.AsyncExitStack() as undo:
            folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="divingbell-"))
            rig = cls(settings, Path(folder))
            trap = await _listening(undo, rig._trap)
            mirror = await _listening(undo, rig._mirror)
            root = logging.getLogger()
            root.addHandler(rig.recorder)
            undo.callback(root.removeHandler, rig.recorder)
            gateway = (await undo.enter_async_context(rig.bell)).gateway
            for server in rig._servers(trap, mirror):
                gateway.add(server)
            await gateway.fleet.wait_for_tools(NAME)
            yield rig

    def _servers(self, trap: int, mirror: int) -> Iterator[Server]:
        for name in (NAME, NAGGING, SWELLING):
            yield Server(
                name,
                command=sys.executable,
                args=("-I", str(SERVER), str(trap)),
                env={"PROMISE_SECRET": self.secret},
            )
        yield Server(
            MIRROR,
            url=f"http://127.0.0.1:{mirror}/mcp",
            headers={"Authorization": f"Bearer {self.secret}"},
            transport="http",
        )

    async def _approve(self, approval: Approval) -> bool | str:
        self.asked.append(approval)
        later = self.answers.get(approval.tool)
        return self.answer if later is None else await later

    async def _trap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.trapped += 1
        writer.close()

    async def _mirror(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A web server that refuses, and quotes the header that it should keep to itself."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            words = next(line for line in head.splitlines() if line.lower().startswith("authori"))
            error = {"code": -32000, "message": f"no entry with {words}"}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
            writer.write(
                b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
                b"X-Seen: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (words.encode(), len(body), body)
            )
            await writer.drain()
        writer.close()

    async def value(self, session: Session, code: str) -> Any:
        """The value of code that has to run well."""
        result = await session.run(code)
        expect(result.status == "ok", f"{code[:80]}: {result.error}")
        return result.value

    async def counted(self, session: Session, name: str) -> int:
        """The number of times that the server has done something."""
        return int(await self.value(session, f"int(servers.{NAME}.counted({name!r}))"))

    def holds_secret(self, text: str) -> bool:
        """Whether the secret is in a text: as it is, in hex, or in base64."""
        encoded = base64.b64encode(f"user:{self.secret}".encode()).decode()
        return any(form in text for form in (self.secret, self.secret.encode().hex(), encoded))

    def holds_disguised(self, text: str) -> bool:
        """Whether the secret is in a text in any other of the forms that the server says it in."""
        from divingbell.promises.servers import hostile

        bare = text.replace("\\\\", "\\")
        forms = hostile.disguised(self.secret)
        forms += [json.dumps(form)[1:-1] for form in forms]  # for what acts on a terminal in them
        return any(form in text or form in bare for form in forms)


async def _listening(
    undo: contextlib.AsyncExitStack,
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> int:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    undo.callback(server.close)
    port: int = server.sockets[0].getsockname()[1]
    return port


ToolCheck = Callable[[ToolRig], Awaitable[str]]
TOOL_CHECKS: dict[str, ToolCheck] = {}


def tool_checks(*identifiers: str, alone: bool = False) -> Callable[[ToolCheck], ToolCheck]:
    """Register a check of these promises that needs tools."""

    def register(function: ToolCheck) -> ToolCheck:
        for identifier in identifiers:
            TOOL_CHECKS[identifier] = function
            if alone:
                ALONE.add(identifier)
        return function

    return register
