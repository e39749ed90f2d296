"""Remembers how tools were defined, so that a change of one is noticed.

A server can show a harmless tool, be trusted with it, and then make it something else (a "rug
pull"). The first definition that is seen is trusted; its hash is kept on disk, for each server
and tool. What a change means is decided in `review`.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.host import owned_folder, private_file
from divingbell.settings.rules import Action
from divingbell.tool import Tool

log = logs.logger("divingbell.gateway")

FILE_NAME = "pins.json"
MAX_TOOLS = 5_000
"""Of one server: one that invents new names without end fills no disk."""
MAX_FILE = 64 << 20
MAX_DIGESTS = 20_000
_VERSION = 1

State = Literal["new", "same", "changed"]
Review = Literal["fine", "warn", "ask"]


class SharedPins(Protocol):
    """The definitions that were seen by any of several processes."""

    async def review(self, tool: Tool, digest: str, action: Action) -> Review:
        """Return what the definition means for a call: see `Pins.review`.

        Raises:
            ToolFailed: it can't be said.
        """

    async def approve(self, tool: Tool, digest: str) -> None:
        """Pin the definition to which a person has said yes.

        Raises:
            ToolFailed: it can't be pinned.
        """


@dataclass(frozen=True, slots=True)
class Pin:
    """What is known of one tool."""

    digest: str
    approved: bool = False
    """A person has said yes to this definition."""


class Pins:
    """The definitions that were seen. Without a path they are forgotten when the process ends."""

    def __init__(self, path: Path | None) -> None:
        """Read what is on disk.

        Raises:
            ConfigError: the file can't be read, or is something else.
        """
        self._path = path
        self._pins = {} if path is None else _read(path)
        self._changes: dict[tuple[str, str], Pin] = {}
        self._digests: dict[tuple[str, str], tuple[Tool, str]] = {}

    def digest(self, tool: Tool) -> str:
        """Return the hash of a tool's definition."""
        key = (tool.server, tool.name)
        known = self._digests.get(key)
        if known is None or known[0] is not tool:
            if len(self._digests) >= MAX_DIGESTS:
                self._digests.clear()
            known = self._digests[key] = (tool, digest(tool))
        return known[1]

    def check(self, tool: Tool) -> State:
        """Return whether the tool is new, or is the same or another than when it was pinned."""
        return self._check(tool.server, tool.name, self.digest(tool))

    def _check(self, server: str, name: str, digest: str) -> State:
        pin = self._pins.get(server, {}).get(name)
        if pin is None:
            return "new"
        return "same" if pin.digest == digest else "changed"

    def review(self, tool: Tool, action: Action) -> Review:
        """Return what the definition means for a call that the policy decides as `action`.

        - "fine": go on. A new tool is pinned.
        - "warn": the definition has changed and the policy plainly allows the tool. The new one
          is pinned, so this is said once; tell whoever runs Divingbell.
        - "ask": the definition has changed, and a person was or would be asked about this tool:
          ask again. It is pinned when `approve` is called.
        """
        return self.review_digest(tool.server, tool.name, self.digest(tool), action)

    def review_digest(self, server: str, name: str, digest: str, action: Action) -> Review:
        """The same for a definition of which only the hash is known."""
        state = self._check(server, name, digest)
        if state == "changed":
            if action == "ask" or self._pins[server][name].approved:
                return "ask"
            self._pin(server, name, Pin(digest))
            return "warn"
        if state == "new":
            self._pin(server, name, Pin(digest))
        return "fine"

    def approve(self, tool: Tool) -> None:
        """Pin the definition to which a person has said yes."""
        self.approve_digest(tool.server, tool.name, self.digest(tool))

    def approve_digest(self, server: str, name: str, digest: str) -> None:
        """The same for a definition of which only the hash is known."""
        pin = Pin(digest, approved=True)
        if self._pins.get(server, {}).get(name) != pin:
            self._pin(server, name, pin)

    @property
    def unsaved(self) -> bool:
        """Whether there is something that `save` would write."""
        return bool(self._changes) and self._path is not None

    def save(self) -> None:
        """Write what is new to disk. It blocks: call it in a thread. Failing is only logged."""
        changes, self._changes = self._changes, {}
        if not changes or self._path is None:
            return
        try:
            owned_folder.make(self._path.parent, 0o700)
            with _locked(self._path):
                # Another Divingbell may have written since: its pins are kept.
                merged = _read(self._path)
                for (server, name), pin in changes.items():
                    merged.setdefault(server, {})[name] = pin
                _write(self._path, merged)
        except (OSError, ConfigError) as error:
            log.warning("the definitions of tools can't be remembered in %s: %s", self._path, error)

    def _pin(self, server: str, name: str, pin: Pin) -> None:
        known = self._pins.setdefault(server, {})
        if name not in known and len(known) >= MAX_TOOLS:
            return
        known[name] = pin
        self._changes[server, name] = pin


def digest(tool: Tool) -> str:
    """Return the hash of what a tool says of itself: name, description and schemas."""
    definition = [tool.name, tool.description, tool.input_schema, tool.output_schema]
    try:
        text = json.dumps(definition, sort_keys=True, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError):
        return f"unreadable {secrets.token_hex(16)}"  # never the same: it is asked about each time
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a definition can't hold {type(value).__name__}")


def _read(path: Path) -> dict[str, dict[str, Pin]]:
    try:
        owned_folder.check(path.parent)
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
        if len(raw) > MAX_FILE:
            raise ValueError("it is too large")
        content = json.loads(raw)
        if content["version"] != _VERSION:
            raise ValueError(f"it is of version {content['version']!r}")
        return {
            server: {name: _pin(entry) for name, entry in tools.items()}
            for server, tools in content["servers"].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path} can't be used: {error}. It holds the definitions of tools that were trusted; "
            "move it away to trust what the servers say now"
        ) from None


def _pin(entry: Any) -> Pin:
    if not isinstance(entry["digest"], str) or not isinstance(entry["approved"], bool):
        raise ValueError("an entry is damaged")
    return Pin(entry["digest"], entry["approved"])


def _write(path: Path, pins: Mapping[str, Mapping[str, Pin]]) -> None:
    servers = {
        server: {name: asdict(pin) for name, pin in sorted(tools.items())}
        for server, tools in sorted(pins.items())
    }
    text = json.dumps({"version": _VERSION, "servers": servers}, indent=1)
    private_file.write(path, text.encode())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes from writing at the same time."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path.with_name(f".{path.name}.lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
