"""One Divingbell with a small upstream server behind it, and clients of both eras."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client

from divingbell import Divingbell
from divingbell.surfaces.mcp.server import Surface
from tests import real_servers

Era = Literal["legacy", "auto"]
POLICY = {
    "rules": [
        {"tools": ["shop.complain"], "action": "ask", "reason": "it is loud"},
        {"tools": ["shop.environment"], "action": "deny"},
    ]
}


@dataclass
class Listener:
    """What a client hears, and what it answers."""

    answer: types.ElicitResult = field(
        default_factory=lambda: types.ElicitResult(action="accept", content={"decision": "yes"})
    )
    progress: list[tuple[float, str | None]] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, message))

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(params.data)

    async def on_question(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(params.message)
        return self.answer

    def options(self) -> dict[str, Any]:
        return {
            "logging_callback": self.on_log,
            "elicitation_callback": self.on_question,
            "cache": None,
        }


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture(scope="module")
async def bell_with_shop() -> AsyncIterator[Divingbell]:
    command, arguments = real_servers.fixture("workshop")
    async with Divingbell(
        pool=1,
        copy_after=0.0,
        interrupt_grace=0.5,
        service={"drain_timeout": 0.5},
        servers={"shop": {"command": command, "args": arguments}},
        policy=POLICY,
    ) as bell:
        yield bell


@pytest.fixture
async def surface(bell_with_shop: Divingbell) -> AsyncIterator[Surface]:
    surface = Surface(bell_with_shop)
    yield surface
    await surface.close()


@pytest.fixture(params=["legacy", "auto"], ids=["2025", "2026"])
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@pytest.fixture
async def client(surface: Surface, era: Era, listener: Listener) -> AsyncIterator[Client]:
    async with Client(surface.server, mode=era, **listener.options()) as client:
        yield client


def text_of(result: types.CallToolResult) -> str:
    """The text of a result."""
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))
