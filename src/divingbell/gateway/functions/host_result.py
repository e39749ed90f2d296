"""The result of a host function, in the form that a server's result has."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import mcp_types


@dataclass(frozen=True, slots=True)
class HostResult:
    """Plain data that a function has returned; the rest is as in `mcp_types.CallToolResult`."""

    structured_content: Any
    is_error: ClassVar[bool] = False
    content: "ClassVar[tuple[mcp_types.ContentBlock, ...]]" = ()

    def for_client(self) -> "mcp_types.CallToolResult":
        """Return it as a client of the protocol gets it. It loads the SDK."""
        import mcp_types

        value = self.structured_content
        text = mcp_types.TextContent(text=json.dumps(value, ensure_ascii=False))
        structured = value if isinstance(value, dict) else None
        return mcp_types.CallToolResult(content=[text], structured_content=structured)
