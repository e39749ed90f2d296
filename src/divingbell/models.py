"""Models that modules hand to one another: limits, events, outputs, results."""

import base64
import json
import re
import reprlib
import sys
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from divingbell import notebook
from divingbell.errors import ConfigError
from divingbell_inside import values

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Status = Literal["ok", "error", "timeout", "limit", "killed", "cancelled"]
LimitName = Literal["memory", "cpu", "processes", "disk", "output", "host"]
State = Literal["kept", "rewound", "fresh"]
ValueKind = Literal["data", "text", "cut"]
"""What `Result.value` is: the value itself, its text, or a part of its text."""
LIMIT_NAMES: tuple[LimitName, ...] = ("memory", "cpu", "processes", "disk", "output", "host")

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "B": 1, "K": KB, "KB": KB, "M": MB, "MB": MB, "G": GB, "GB": GB}
MAX_SIZE = 40
"""Characters of a size that is written as text."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)I?(B?)\s*", re.IGNORECASE)


def parse_size(value: str | float) -> int:
    """Return bytes for 536870912, "512MB", "1.5 GiB" …

    Raises:
        ConfigError: it is not a size.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value) if isinstance(value, str | float) else ""
    match = _SIZE.fullmatch(text) if len(text) <= MAX_SIZE else None
    if match is None:
        shown = repr(text[:MAX_SIZE]) if text else f"a {type(value).__name__}"
        raise ConfigError(f"{shown} is not a size: write bytes, or a number with KB, MB or GB")
    return int(float(match[1]) * _UNITS[(match[2] + match[3]).upper()])


Size = Annotated[int, parse_size]
"""Bytes, which settings may also give as text."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one session. Times are seconds, sizes are bytes."""

    timeout: float = 30.0
    """Wall time of a cell; it stands still while a tool is awaited."""
    ceiling: float = 600.0
    """Wall time of a cell with the tools it waits for."""
    cpu_seconds: float = 60.0
    """Processor time of a cell, all its processes together."""
    cores: float = 1.0
    """Share of the processor: 0.5 is half a core, 2 is two cores."""
    memory: Size = 512 * MB
    """Memory of all processes of the session; files in /workspace and /tmp count too."""
    processes: int = 64
    """Processes and threads at once."""
    open_files: int = 1024
    """Open files of one process."""
    disk: Size = 256 * MB
    """Files in /workspace, /tmp and the home folder together."""
    output: Size = 1 * MB
    """Text of a cell that is shown, its start and its end; all is kept in /workspace/.outputs/."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not value > 0:
                raise ConfigError(f"the limit {item.name} must be more than 0, not {value!r}")
        if self.memory < 32 * MB:
            raise ConfigError("the limit memory must be at least 32MB: the interpreter needs that")
        if self.cores < 0.01:
            raise ConfigError("the limit cores must be at least 0.01")
        if self.processes < 2 or self.open_files < 64:
            raise ConfigError("at least 2 processes and 64 open files are needed to run anything")

    def sealed_like(self, other: "Limits") -> bool:
        """Whether both make the same sandbox: they differ only in what the host enforces."""
        return all(getattr(self, name) == getattr(other, name) for name in SEALED_LIMITS)


SEALED_LIMITS = ("cores", "memory", "processes", "open_files", "disk")
"""The limits that a sandbox is sealed with. The host enforces the others, cell by cell."""


class SessionLimits(TypedDict, total=False):
    """The limits that a session may be opened with, by name: those of `Limits`.

    Sizes are bytes, or text such as "512MB".
    """

    timeout: float
    ceiling: float
    cpu_seconds: float
    cores: float
    memory: int | str
    processes: int
    open_files: int
    disk: int | str
    output: int | str


DataFormat = Literal["parquet", "arrow", "csv"]
"""The format of a table that is passed as a file."""
FrameLibrary = Literal["pandas", "polars"]
"""The library whose frames a program wants."""
OutputName = Literal["stdout", "stderr", "display", "result"]
EventType = Literal[
    "stdout", "stderr", "display", "result", "clear", "progress", "log", "notice", "done"
]


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, as they are: `asdict` would look through each for others,
    which was a twentieth of what a small cell cost over HTTP."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that a cell has shown."""

    type: str
    """A MIME type: text/plain, text/html, image/png …"""
    data: str | bytes
    """Text, or the bytes of an image."""
    name: OutputName = "display"
    """Its origin: stdout, stderr, display or result (the value of the last line)."""
    cell: int = 0
    """The number of the cell that made it; a thread may speak up during a later one."""
    path: str | None = None
    """The file in the workspace that keeps it, if it is an image or can't be seen as text."""
    texts: tuple[str, ...] | None = None
    """The texts that matplotlib has drawn into an image, as the code's process says; None if it
    says nothing."""

    def __repr__(self) -> str:
        return short_repr(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, but for `texts`; bytes are base64, and `encoding` says
        so."""
        plain = _fields_of(self)
        del plain["texts"]
        if isinstance(self.data, str):
            return plain
        return plain | {
            "data": base64.b64encode(self.data).decode(),
            "encoding": "base64",
        }


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a cell ran."""

    type: EventType
    text: str = ""
    """The text of stdout, stderr, progress, log and notice."""
    outputs: tuple[Output, ...] = ()
    """The parts of a display or result, one for each MIME type."""
    cell: int = 0
    display_id: str | None = None
    update: bool = False
    """This display takes the place of the earlier one with the same display_id."""
    result: "Result | None" = None
    """The whole result, with done."""
    tool: str | None = None
    """The tool that speaks, with progress and log."""
    progress: float | None = None
    """How far it is, with progress."""
    total: float | None = None
    """How far it has to go, where it knows."""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a cell did not end well, in words for the one who wrote it."""

    type: str
    message: str
    traceback: str = ""
    hint: str = ""
    """A line about the sandbox that the writer of the code may not know, where that is the
    cause."""
    exit_status: int | None = None
    """The number that the code has given to `sys.exit`, if it was one."""

    def __str__(self) -> str:
        shown = self.traceback.rstrip() or f"{self.type}: {self.message}"
        return f"{shown}\n{self.hint}" if self.hint else shown


NOT_MADE = "not_made"
"""The status of a call that was cancelled before it left for its server, or could not leave."""
_NOT_MADE = (NOT_MADE, "tool_arguments", "tool_denied", "tool_unknown", "tool_limit")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool that a cell has made."""

    name: str
    arguments: str
    """The start of them, as JSON."""
    status: str
    """ok, the code of its failure (tool_error, tool_denied …), cancelled, or not_made."""
    milliseconds: float = 0.0

    @property
    def made(self) -> bool:
        """Whether it may have reached its server: False where it was refused on the way."""
        return self.status not in _NOT_MADE

    def __str__(self) -> str:
        return f"{self.name}({self.arguments}): {self.status}"


@dataclass(frozen=True, slots=True)
class Usage:
    """The time, memory and output that a cell has used, as seen from outside."""

    wall_ms: float = 0.0
    cpu_ms: float | None = None
    memory_peak: int | None = None
    """The most memory that the session has held so far, in bytes (only with cgroups)."""
    output_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Isolation:
    """The walls and limits in force around a session, for `doctor` and the session's info."""

    backend: str
    """The backend, by its name in the settings and in the table of promises."""
    limits_by: str
    """The means that enforce memory, CPU and processes: cgroup v1, cgroup v2 or rlimits."""
    landlock: int
    """The ABI in force; 0: this kernel has none."""
    own_uid: bool
    """Each session has a uid of its own on the host."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The time and memory that a sandbox has used so far, counted from outside."""

    cpu_seconds: float
    memory: int | None = None
    memory_peak: int | None = None
    memory_kills: int = 0
    refused_processes: int = 0


IMAGE_TOKENS = 1_000
"""The cost that an image is taken to have. Models differ: a picture of 1024 by 1024 costs 765 to
1,400."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tokens that the calls of one tool would have cost."""

    name: str
    """`server.tool`."""
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The tokens of one execution."""

    code_tokens: int = 0
    """The code, which the model wrote."""
    output_tokens: int = 0
    """Tokens of what the model was shown: the text of the result, with its notes."""
    overhead_tokens: int = 0
    """Tokens of what it read besides: Divingbell's own tools (once a conversation) and searches."""
    direct_definition_tokens: int = 0
    """The definitions of all tools, which a model was spared: with the first execution of its
    conversation. 0 in all others, and where no model reads."""
    direct_call_tokens: int = 0
    """The arguments and results of all calls, which did not pass through the model."""
    calls: int = 0
    images: int = 0
    """Images that were shown. No tokens are counted for them: see `image_tokens`."""
    direct_images: int = 0
    """Images in results of calls."""
    estimated: bool = False
    """Something was too long to be counted whole."""
    tools: tuple[ToolUse, ...] = field(default=(), repr=False)
    """The part that each tool had in `direct_call_tokens`."""

    @property
    def read(self) -> int:
        """The tokens that passed through the model."""
        return self.code_tokens + self.output_tokens + self.overhead_tokens

    @property
    def direct(self) -> int:
        """The tokens that would have passed through it."""
        return self.direct_definition_tokens + self.direct_call_tokens

    @property
    def saved(self) -> int:
        """The difference; less than 0 where code was the more costly way."""
        return self.direct - self.read

    @property
    def ratio(self) -> float:
        """The share of the direct cost that was saved: 0.99 is 99 %. 0 where there was none."""
        return self.saved / self.direct if self.direct else 0.0

    @property
    def image_tokens(self) -> int:
        """An estimate for the images that were shown, in no other figure."""
        return self.images * IMAGE_TOKENS

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return _fields_of(self) | {
            "tools": tuple(asdict(tool) for tool in self.tools),
            "read": self.read,
            "direct": self.direct,
            "saved": self.saved,
            "ratio": round(self.ratio, 4),
            "image_tokens": self.image_tokens,
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a cell: how it ended and what it showed."""

    status: Status
    value: Any = None
    """The last expression: plain data as it is, anything else as its text. See `value_kind`."""
    outputs: tuple[Output, ...] = ()
    error: Failure | None = None
    limit: LimitName | None = None
    usage: Usage = field(default_factory=Usage)
    cell: int = 0
    state: State = "kept"
    """kept: all variables are there. rewound: they are as of `state_cell`. fresh: none are."""
    state_cell: int | None = None
    notes: tuple[str, ...] = ()
    """Notes for the reader: output that was cut, processes that were ended …"""
    calls: tuple[ToolCall, ...] = ()
    """The calls of tools that the cell has made, in the order in which they ended."""
    ledger: Ledger | None = None
    """The tokens that the model read, and those that the same calls would have cost directly."""
    value_kind: ValueKind = "data"
    """data: `value` is exactly the value; None without one. text: it is its text, because it is no
    plain data. cut: it is a part of its text, because it was too long."""

    @property
    def text(self) -> str:
        """Everything that was shown, as text."""
        return as_text(self.outputs)

    def __repr__(self) -> str:
        return short_repr(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can hold.

        First what most want: success, output (all text, with the notes), error (in words) and
        execution_time_ms. Then each field by its name: the value in its JSON form, images as
        base64, the failure as `failure`.
        """
        value, kind = self._value_as_data()
        return {
            "success": self.status == "ok",
            "output": with_line_ended(self.text) + "".join(f"[{note}]\n" for note in self.notes),
            "error": None if self.error is None else str(self.error),
            "execution_time_ms": round(self.usage.wall_ms, 3),
            "status": self.status,
            "value": value,
            "value_kind": kind,
            "outputs": [output.to_dict() for output in self.outputs],
            "failure": None if self.error is None else asdict(self.error),
            "limit": self.limit,
            "usage": _fields_of(self.usage),
            "cell": self.cell,
            "state": self.state,
            "state_cell": self.state_cell,
            "notes": list(self.notes),
            "calls": [asdict(call) for call in self.calls],
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
        }

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict())

    def _value_as_data(self) -> tuple[Any, ValueKind]:
        try:
            data = values.encode(self.value, items=sys.maxsize, text=sys.maxsize)
        except values.NotPlain:  # a result that no session has made
            return _SHORT.repr(self.value), "text"
        return data, self.value_kind

    def _repr_html_(self) -> str:
        """Return what a notebook shows: text and images. Nothing that a cell made can run there."""
        shown = f"cell {self.cell}: {self.status}, {self.usage.wall_ms:,.0f} ms"
        parts = [notebook.small_text(shown), *map(_as_html, self.outputs)]
        if self.error is not None:
            parts.append(notebook.text(str(self.error)))
        return "".join([*parts, *map(notebook.small_text, self.notes)])


def _as_html(output: Output) -> str:
    if isinstance(output.data, bytes):
        return notebook.image(output.type, output.data)
    return notebook.text(output.data) if output.type == "text/plain" else ""


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def short_repr(item: "DataclassInstance") -> str:
    """Return the representation of an item: what is not as usual, and the start of what is long."""
    shown = []
    for each in fields(item):
        value = getattr(item, each.name)
        usual = each.default_factory() if each.default_factory is not MISSING else each.default
        if value is not usual and (type(value) is not type(usual) or value != usual):
            is_long = isinstance(value, bytes) and len(value) > _SHORT.maxstring
            words = f"<{len(value):,} bytes>" if is_long else _SHORT.repr(value)
            shown.append(f"{each.name}={words}")
    return f"{type(item).__name__}({', '.join(shown)})"


def as_text(outputs: Iterable[Output]) -> str:
    """Return outputs as text, for someone who reads: an image is a line that says where it is."""
    pieces: list[str] = []
    for output in outputs:
        text = _as_text(output)
        if pieces and text and output.name not in ("stdout", "stderr"):
            pieces[-1] = with_line_ended(pieces[-1])
        pieces.append(text)
    return "".join(pieces)


def with_line_ended(text: str) -> str:
    """Return the text with its last line ended, for another to follow."""
    return text + "\n" if text and not text.endswith("\n") else text


def _as_text(output: Output) -> str:
    if output.type == "text/plain":
        text = str(output.data)
        return text if output.name in ("stdout", "stderr") else text.rstrip("\n") + "\n"
    if isinstance(output.data, bytes) and output.type.startswith("image/"):
        where = f", kept in {output.path}" if output.path else ""
        return f"[{output.type}, {len(output.data):,} bytes{where}]\n"
    return ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One way in which code could go on."""

    start: int
    end: int
    """The part of the code that it takes the place of."""
    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a session, described without being fetched."""

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    length: int | None = None
    preview: str | None = None


FileKind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file in a session's workspace, or what else is there under its path."""

    path: str
    """Below /workspace, without that prefix."""
    size: int
    """Bytes; 0 where it is no file."""
    modified: float
    """Seconds since 1970, as code has set it or left it."""
    kind: FileKind = "file"
    """file, folder, link (which is never followed), or other: a pipe, a socket, a device."""
