"""The ways of a server's words to a client and to a person."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from divingbell.promises.check.rig import expect
from divingbell.promises.check.tool_rig import NAME, ToolRig, tool_checks
from divingbell.text import is_hiding, texts_in

if TYPE_CHECKING:
    from mcp import Client

_PROMPT, _RESOURCE, _TEMPLATE = "prompt", "veiled://a", "veiled://{x}"
_VOICE = "Divingbell asks"


class Ear:
    """A client that asks for everything that there is, and keeps all that it is told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.asked: list[Any] = []

    def options(self) -> dict[str, Any]:
        return {
            "logging_callback": self._on_log,
            "elicitation_callback": self._on_question,
            "log_level": "debug",
            "cache": None,
        }

    async def _on_log(self, params: Any) -> None:
        self.heard.append(_plain(params))

    async def _on_question(self, context: Any, params: Any) -> Any:
        import mcp_types

        self.heard.append(_plain(params))
        self.asked.append(params)
        return mcp_types.ElicitResult(action="decline")

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append([progress, total, message])

    async def listen(self, client: "Client") -> None:
        """Ask for everything; whatever comes back, errors too, is kept."""
        import mcp_types as types

        ways = [
            client.list_tools(),
            client.list_resources(),
            client.list_resource_templates(),
            client.list_prompts(),
            client.get_prompt(_PROMPT),
            client.read_resource(_RESOURCE),
            client.complete(types.PromptReference(name=_PROMPT), {"name": "x", "value": ""}),
            client.complete(
                types.ResourceTemplateReference(uri=_TEMPLATE), {"name": "x", "value": ""}
            ),
            client.call_tool("search_tools", {"query": "", "detail_level": "full", "limit": 100}),
        ]
        for name in ("poisoned", "murmur", "ask", "lie", "no such tool"):
            ways.append(client.call_tool(name, {}, progress_callback=self.on_progress))
        for way in ways:
            try:
                self.heard.append(_plain(await way))
            except Exception as error:
                self.heard.append([str(error), getattr(error, "data", None)])

    def hidden(self) -> list[str]:
        """The texts among it that hide something."""
        return [ascii(text) for text in texts_in(self.heard) if is_hiding(text)]


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


# Alone: a server's question reaches a person only if no other session has a call under way there.


@tool_checks("D70", alone=True)
async def words_to_clients(rig: ToolRig) -> str:
    ear = Ear()
    async with connected(rig, ear) as client:
        await ear.listen(client)
    said = json.dumps(ear.heard, default=str)
    for word in ("link", "said", "done", "choice", "argument", "title", "value", "one"):
        expect(word in said, f"too little was heard: no {word!r}")
    expect(not ear.hidden(), f"hidden characters reach the client: {ear.hidden()[:1]}")
    return f"{len(ear.heard)} answers and messages hide nothing"


@tool_checks("D71", alone=True)
async def questions_in_our_name(rig: ToolRig) -> str:
    ear = Ear()
    async with connected(rig, ear) as client:
        await client.call_tool("ask", {})
    [asked] = ear.asked
    expect(asked.message.startswith(f"{NAME} asks: "), f"not signed: {asked.message!r}")
    expect(f"\n{_VOICE}" not in asked.message, f"it speaks in our name: {asked.message!r}")
    titles = [field["title"] for field in asked.requested_schema["properties"].values()]
    expect(all(title.startswith(f"{NAME}: ") for title in titles), f"fields: {titles}")
    expect("title" not in asked.requested_schema, "the form has a title of its own")
    return "the question, its lines and its fields say who asks"


@contextlib.asynccontextmanager
async def connected(rig: ToolRig, ear: Ear) -> "AsyncIterator[Client]":
    """A client of ours that sees all tools of the hostile server directly."""
    from mcp import Client

    from divingbell.surfaces.mcp.server import Surface

    settings, entry = rig.bell.settings, rig.bell.gateway.fleet.server(NAME)
    assert entry is not None
    rig.bell.settings = replace(settings, mode="hybrid", servers=(replace(entry, direct=("*",)),))
    try:
        surface = Surface(rig.bell)
    finally:
        rig.bell.settings = settings
    try:
        async with Client(surface.server, mode="legacy", **ear.options()) as client:
            yield client
    finally:
        await surface.close()
