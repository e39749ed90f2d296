"""The connection to a server, as the gateway uses it, wherever it is held.

`Upstream` (divingbell.gateway.upstream.upstream) holds it in this process, `RemoteUpstream`
(divingbell.scale.gateway.remote_upstream) in the one gateway that several replicas have.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from divingbell.gateway.callers import Caller
from divingbell.gateway.upstream.transport.departure import Departure

if TYPE_CHECKING:
    import mcp_types


class UpstreamConnection(Protocol):
    """A server that can be called; where it can't, the errors say in words what is wrong."""

    spool: Path | None

    @property
    def state(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def tools(self) -> "list[mcp_types.Tool]": ...

    @property
    def instructions(self) -> str | None: ...

    @property
    def protocol_version(self) -> str | None: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def log_path(self) -> Path: ...

    def start(self, *, lazy: bool = True) -> None: ...

    def retry(self) -> None: ...

    async def stop(self) -> None: ...

    async def ready(self, timeout: float | None = None) -> None: ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
        caller: Caller | None = None,
        departure: Departure | None = None,
    ) -> "mcp_types.CallToolResult": ...

    async def read_resource(
        self, uri: str, caller: Caller | None = None, *, timeout: float | None = None
    ) -> "mcp_types.ReadResourceResult": ...

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        caller: Caller | None = None,
        *,
        timeout: float | None = None,
    ) -> "mcp_types.GetPromptResult": ...

    async def complete(
        self,
        ref: "mcp_types.ResourceTemplateReference | mcp_types.PromptReference",
        argument: "mcp_types.CompletionArgument",
        context: Mapping[str, str] | None = None,
    ) -> "mcp_types.CompleteResult": ...

    async def list_resources(self) -> "list[mcp_types.Resource]": ...

    async def list_resource_templates(self) -> "list[mcp_types.ResourceTemplate]": ...

    async def list_prompts(self) -> "list[mcp_types.Prompt]": ...
