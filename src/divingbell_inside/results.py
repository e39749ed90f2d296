"""Results of calls of tools: plain values, media with `.save()`, or an error."""

import base64
import contextlib
import json
import os
from typing import Any

from divingbell_inside import layout, table_files
from divingbell_inside.line import Frame


class ToolError(Exception):
    """A call of a tool did not succeed. `code` says how, `tool` which one it was."""

    code: str = "tool_error"

    def __init__(self, message: str, code: str = "tool_error", tool: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.tool = tool


class ToolDenied(ToolError):
    """The rules of this place do not allow the call."""


class ToolTimeout(ToolError, TimeoutError):
    """The tool did not answer in its time."""


for _error in (ToolError, ToolDenied, ToolTimeout):
    _error.__module__ = "tool_discovery"  # where users find them

_KINDS = {"tool_denied": ToolDenied, "tool_timeout": ToolTimeout}


def unpack(name: str, answer: Frame, result_type: Any) -> Any:
    """Return the value of an answer of the host.

    Raises:
        ToolError: the call did not succeed.
    """
    header, body = answer
    if not header.get("ok"):
        code = str(header.get("code", "tool_error"))
        raise _KINDS.get(code, ToolError)(str(header.get("message", "")), code, name)
    wire = json.loads(body)
    kind = header.get("kind")
    if kind == "table":
        return _table(name, wire["path"])
    if kind == "tool":
        return _result(name, wire, result_type)
    if kind == "resource":
        contents = [_content(content, keep_text=True) for content in wire]
        return contents[0] if len(contents) == 1 else contents
    return wire  # an answer of the host's own


def _table(name: str, path: str) -> Any:
    """Return the DataFrame of a file that the host has put here for it."""
    full = os.path.join(layout.WORKSPACE, path)
    try:
        return table_files.read(full, "parquet")
    except MemoryError:
        raise ToolError(
            f"{name}: the table does not fit into the session's memory beside what is there: "
            "delete what you don't need, or ask for fewer rows or columns",
            "tool_limit",
            name,
        ) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(full)


MAX_SHOWN = 20
"""Images of one result that are shown with it."""


class Media:
    """An image, a sound or a file that a tool gave back."""

    def __init__(self, mime_type: str, data: bytes, uri: str = "") -> None:
        self.mime_type = mime_type
        self.data = data
        self.uri = uri

    @property
    def text(self) -> str:
        """The content as text."""
        return self.data.decode("utf-8")

    def save(self, path: Any) -> str:
        """Write it to a file, such as one in /workspace; return the path."""
        with open(path, "wb") as file:
            file.write(self.data)
        return str(path)

    def __repr__(self) -> str:
        where = f" {self.uri}" if self.uri else ""
        return (
            f"<{self.mime_type or 'data'}{where}, {len(self.data):,} bytes; .save(path) writes it>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        shown: dict[str, Any] = {"text/plain": repr(self)}
        if self.mime_type in layout.IMAGES:
            shown[self.mime_type] = self.data
        return shown


class Link:
    """A resource that a tool points to; `read_resource(link.uri)` of its server gets it."""

    def __init__(self, block: dict[str, Any]) -> None:
        self.uri: str = block["uri"]
        self.name: str = block.get("name") or ""
        self.description: str = block.get("description") or ""
        self.mime_type: str = block.get("mimeType") or ""

    def __repr__(self) -> str:
        return f"<link {self.uri}>"


class ToolResult:
    """A whole result, where `result_type="raw"` asked for it."""

    def __init__(self, structured: Any, content: list[Any], meta: Any) -> None:
        self.structured = structured
        self.content = content
        self.meta = meta

    def __repr__(self) -> str:
        return f"ToolResult(structured={self.structured!r}, content={self.content!r})"


def images_in(value: Any) -> list[Media]:
    """The images of a result that has several parts, which its text only names."""
    parts = value.content if isinstance(value, ToolResult) else value
    if type(parts) not in (list, tuple):
        return []
    shown = [part for part in parts if isinstance(part, Media) and part.mime_type in layout.IMAGES]
    return shown[:MAX_SHOWN]


def _result(name: str, wire: dict[str, Any], result_type: Any) -> Any:
    content = [_block(block) for block in wire.get("content", ())]
    structured = wire.get("structured")
    if result_type == "raw":
        return ToolResult(structured, content, wire.get("meta"))
    if "structured" in wire:
        value = [structured, *content] if content else structured
    else:
        value = content[0] if len(content) == 1 else (content or None)
    if result_type is None:
        return value
    return _converted(name, value, result_type)


def _converted(name: str, value: Any, result_type: Any) -> Any:
    if isinstance(value, str) and result_type is not str:
        try:
            value = json.loads(value)
        except ValueError:
            raise ToolError(
                f"{name}: the result is text that is not JSON, so no {_name_of(result_type)}: "
                f"{value[:200]!r}",
                "tool_result",
                name,
            ) from None
    if result_type is str and not isinstance(value, str):
        return json.dumps(value)
    if isinstance(result_type, type) and not isinstance(value, result_type):
        try:
            return result_type(**value) if isinstance(value, dict) else result_type(value)
        except (TypeError, ValueError) as error:
            raise ToolError(
                f"{name}: the result is {type(value).__name__} and can't become "
                f"{_name_of(result_type)}: {error}",
                "tool_result",
                name,
            ) from None
    return value


def _name_of(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _block(block: dict[str, Any]) -> Any:
    kind = block.get("type")
    if kind == "text":
        return block["text"]
    if kind in ("image", "audio"):
        return Media(block.get("mimeType", ""), base64.b64decode(block["data"]))
    if kind == "resource":
        return _content(block["resource"], keep_text=False)
    if kind == "resource_link":
        return Link(block)
    return block


def _content(content: dict[str, Any], *, keep_text: bool) -> Any:
    if "text" in content:
        if keep_text:
            return content["text"]
        data = content["text"].encode("utf-8", "backslashreplace")
    else:
        data = base64.b64decode(content.get("blob", ""))
    return Media(content.get("mimeType") or "", data, content.get("uri", ""))
