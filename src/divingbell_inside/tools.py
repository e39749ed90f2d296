"""Tools of MCP servers, as Python sees them.

There is one way out: `call(name, arguments)`. The files under /servers, the functions that find
tools, and the packages' own `read_resource` and the like are thin over it. What is refused is
refused by the host; nothing here is a wall.
"""

import asyncio
import builtins
import contextlib
import difflib
import importlib
import importlib.util
import json
import os
import sys
import types
from collections.abc import Iterable, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn

from divingbell_inside import frames, layout, results
from divingbell_inside.line import Frame, Line
from divingbell_inside.results import ToolDenied, ToolError, ToolTimeout

MAX_ARGUMENTS = frames.MAX_BODY
PACKAGE = "servers"
_OWN_NAMES = ("resources", "read_resource", "prompts", "get_prompt")


class _Unset:
    """The default of optional parameters: it is not sent, so that the server uses its own."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Any = _Unset()

_line: Line | None = None
_made = 0
"""The generation of the files under /servers that were imported."""


def connect(line: Line) -> None:
    """Called by the runner: use this line."""
    global _line
    _line = line


# The one way out


def call(name: str, arguments: dict[str, Any], result_type: Any = None) -> Any:
    """Call a tool: `server.tool` with its arguments.

    Returns:
        The result; under a running event loop, a started awaitable of it.

    Raises:
        ToolError: the call did not succeed, with the server's own words.
    """
    loop = asyncio._get_running_loop()
    if loop is None:
        return call_now(name, arguments, result_type)
    header = {"name": name}
    body = _encode(name, arguments)
    pending = Pending(name, loop)
    answer: asyncio.Future[Frame] = loop.create_future()
    answer.add_done_callback(lambda answer: pending.take(answer, result_type))
    pending.add_done_callback(lambda _: answer.cancel())
    _connected().start(header, body, answer)
    return pending


def call_now(name: str, arguments: dict[str, Any], result_type: Any = None) -> Any:
    """Call and wait, whoever else has to wait with us."""
    answer = _connected().call({"name": name}, _encode(name, arguments))
    return results.unpack(name, answer, result_type)


def _connected() -> Line:
    if _line is None:
        raise ToolError("tools can be called from a session only", "tool_unavailable")
    return _line


def _encode(name: str, arguments: dict[str, Any]) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool is text, not {type(name).__name__}")
    if not isinstance(arguments, dict):
        raise TypeError(
            f"{name}: the arguments are a dict of names and values, not {type(arguments).__name__}"
        )
    given = {key: value for key, value in arguments.items() if value is not UNSET}
    try:
        body = _dumps(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"{name}: {_culprit(given)} can't be sent ({error}): pass plain data (numbers, text, "
            "lists, dicts)",
            "tool_arguments",
            name,
        ) from None
    if len(body) > MAX_ARGUMENTS:
        raise ToolError(
            f"{name}: the arguments have {len(body):,} bytes, {MAX_ARGUMENTS:,} are the most",
            "tool_limit",
            name,
        )
    return body


def _dumps(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, default=_plain).encode()


def _culprit(given: dict[str, Any]) -> str:
    for key, value in given.items():
        try:
            _dumps({key: value})
        except (TypeError, ValueError, RecursionError):
            return f"the argument {key!r}"
    return "an argument"


def _plain(value: Any) -> Any:
    """Return plain data for what is as good as that: numbers of numpy, dates, paths, sets, data
    classes."""
    if hasattr(value, "tolist"):  # numpy, pandas
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise TypeError(f"{type(value).__name__} is not plain data")


class Pending(asyncio.Future[Any]):
    """A call that is under way. It is not the result: await it."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._tool = name

    def take(self, answer: "asyncio.Future[Frame]", result_type: Any) -> None:
        if self.done():
            return
        if answer.cancelled():
            self.cancel()
            return
        try:
            self.set_result(results.unpack(self._tool, answer.result(), result_type))
        except Exception as error:
            self.set_exception(error)

    def _not_the_value(self, *_: object) -> NoReturn:
        raise TypeError(
            f"this is a call of {self._tool} that is still under way, not its result: "
            "write `await` before it"
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{name!r}: this is a call of {self._tool} that is still under way, not its result: "
            "write `await` before it"
        )

    def __repr__(self) -> str:
        return f"<call of {self._tool}: write `await` before it to get the result>"

    # Not `==` and the hash, which asyncio needs.
    __iter__ = __len__ = __getitem__ = __contains__ = __bool__ = __call__ = _not_the_value
    __int__ = __float__ = __index__ = __neg__ = __lt__ = __gt__ = __le__ = __ge__ = _not_the_value
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __or__ = _not_the_value
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmod__ = __ror__ = __and__ = _not_the_value


# Finding tools


def search_tools(
    query: str = "",
    detail_level: str = "name_only",
    limit: int = 10,
    server: str | None = None,
) -> Any:
    """Find tools by what they do, best first; without a query, list them by name.

    query: what you want to do; several phrasings of it find more: "money back | create refund".
    detail_level: "name_only", "with_description", or "full" (schemas and Python signature);
    "servers" finds the best servers instead, at most three.
    limit: how many, up to 100; the cell's notes say how many more there are.
    server: look in this one only.
    """
    return call(
        "search_tools",
        {"query": query, "detail_level": detail_level, "limit": limit, "server": server},
    )


def list_mcp_tools(server: str | None = None) -> Any:
    """The names of all tools, or of those of one server."""
    return call("list_mcp_tools", {"server": server})


def get_mcp_tool_details(name: str) -> Any:
    """All about one tool: description, schemas, Python signature, how to import it."""
    return call("get_mcp_tool_details", {"name": name})


def call_mcp_tool(
    name: str, arguments: dict[str, Any] | None = None, result_type: Any = None
) -> Any:
    """Call a tool by its name: "server.tool" (or "mcp__server__tool").

    result_type: what to make of the result: dict, list, str … or "raw" for the whole of it.
    """
    return call(name, arguments or {}, result_type)


def delegate(
    task: str,
    context: dict[str, Any] | None = None,
    tools: Sequence[str] | str = (),
    budget: int | None = None,
) -> Any:
    """Have a helper do a part of the work in a session of its own, and return its result.

    task: what to do and what to return, in words; the helper knows nothing else of this session.
    context: plain data that the helper finds as variables.
    tools: what it may call: names such as "shop.find_orders", or patterns; by default nothing.
    budget: the most tokens that it may use; they are taken from your own.

    Several at once: `await asyncio.gather(delegate(…), delegate(…))`. It ends with the cell.
    """
    names = [tools] if isinstance(tools, str) else list(tools)
    given = {"task": task, "context": context or {}, "tools": names}
    return call("delegate", given if budget is None else given | {"budget": budget})


ERRORS = (ToolError, ToolDenied, ToolTimeout)
FUNCTIONS = (search_tools, list_mcp_tools, get_mcp_tool_details, call_mcp_tool, delegate)
NAMES: dict[str, Any] = {item.__name__: item for item in (*FUNCTIONS, *ERRORS)}


# The package `servers`

_NOT_REPLACED = frozenset(
    {*dir(builtins), *NAMES, PACKAGE, "display", "get_ipython", "save_skill", "search_skills"}
)
"""Names that every cell has, and that no server may make mean something else."""


class _Finder(MetaPathFinder):
    """Finds what has no file: a server that is just starting, a tool that not everyone may call."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        above, _, rest = name.partition(".")
        server, _, tool = rest.partition(".")
        if above != PACKAGE or not server or server.startswith("_") or "." in tool:
            return None
        found = PathFinder.find_spec(name, path)
        # A folder that is still without its __init__.py looks like a namespace.
        if found is not None and found.origin is not None:
            return found
        try:
            told = _await_server(server, tool or None)
        except ToolError as error:
            raise ModuleNotFoundError(str(error), name=name) from None
        if tool and told["source"] is not None:
            return _spec(name, told["source"])
        PathFinder.invalidate_caches()
        found = PathFinder.find_spec(name, path)
        if found is None and tool:
            # No ModuleNotFoundError: of those `from servers.shop import x` hides the words.
            raise _no_tool(server, tool, told, ImportError)
        return found


class _Told(InspectLoader):
    """Loads a module from the source that the host has told."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        return self._source


def _spec(name: str, source: str) -> ModuleSpec:
    return ModuleSpec(name, _Told(source), origin=f"<{name}>")


def _load(spec: ModuleSpec) -> types.ModuleType:
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return sys.modules.setdefault(spec.name, module)


def _await_server(server: str, tool: str | None = None) -> Any:
    """Ask the host: which generation the files are, and the source of a tool that has no file."""
    return call_now("await_server", {"server": server, "tool": tool})


class _Servers(types.ModuleType):
    """`import servers`, then `servers.github.create_issue(…)`: loaded when it is used."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return importlib.import_module(f"{PACKAGE}.{name}")
            except ModuleNotFoundError as error:
                raise AttributeError(str(error)) from None
        raise AttributeError(name)

    def __dir__(self) -> Iterable[str]:
        with contextlib.suppress(OSError), os.scandir(layout.SERVERS) as found:
            return sorted(entry.name for entry in found if entry.is_dir())
        return []


class _Server(types.ModuleType):
    """A package whose attributes are functions, though its files are modules of the same names."""

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_tools", ()):
            return getattr(importlib.import_module(f"{self.__name__}.{name}"), name)
        told = None if name.startswith("_") else self._asked(name)
        if told is not None:
            if told["generation"] != _made:  # it has another list by now
                forget_packages(told["generation"])
                return getattr(importlib.import_module(self.__name__), name)
            if told["source"] is not None:
                setattr(self, name, _load(_spec(f"{self.__name__}.{name}", told["source"])))
                return self.__dict__[name]
        raise _no_tool(self.__name__.rpartition(".")[2], name, told, AttributeError)

    def _asked(self, tool: str) -> Any:
        try:
            return _await_server(self.__name__.rpartition(".")[2], tool)
        except ToolError as error:
            if error.code == "tool_limit":
                raise AttributeError(str(error)) from None
            return None
        except (RuntimeError, EOFError):
            return None

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its parent: here it is the function that counts.
        if isinstance(value, types.ModuleType):
            value = value.__dict__.get(name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return sorted({*self.__dict__.get("_tools", ()), *_OWN_NAMES})


def _no_tool(server: str, name: str, told: Any, kind: type[Exception]) -> Exception:
    """The error for a tool that is not there, or not for this user."""
    if told is not None and told["denied"] is not None:
        return ToolDenied(told["denied"], "tool_denied", f"{server}.{name}")
    package = sys.modules.get(f"{PACKAGE}.{server}")
    near = difflib.get_close_matches(name, package.__dict__.get("_tools", ()) if package else (), 3)
    return kind(
        f"the server {server!r} has no tool {name!r}; "
        + (f"did you mean {' or '.join(near)}?" if near else f"dir(servers.{server}) lists them")
    )


def serve_package(name: str, server: str, functions: tuple[str, ...]) -> None:
    """Called by /servers/<server>/__init__.py: make the package give out its tools."""
    module = sys.modules[name]
    names = module.__dict__
    names["_tools"] = functions
    # What `import *` brings. A tool that is called `open` or `search_tools` stays where it is.
    names["__all__"] = [each for each in functions if each not in _NOT_REPLACED]

    def resources() -> Any:
        """The resources of this server, and the templates of their addresses."""
        return call("list_resources", {"server": server})

    def read_resource(uri: str) -> Any:
        """Read a resource: text as str, anything else as an object with `.data` and `.save()`."""
        return call("read_resource", {"server": server, "uri": uri})

    def prompts() -> Any:
        """The prompts of this server, with their arguments."""
        return call("list_prompts", {"server": server})

    def get_prompt(name: str, **arguments: str) -> Any:
        """A prompt, filled in: its description and messages."""
        return call("get_prompt", {"server": server, "name": name, "arguments": arguments})

    for function in (resources, read_resource, prompts, get_prompt):
        function.__module__ = name
        names[function.__name__] = function
    module.__class__ = _Server


def install() -> None:
    """In the zygote: make `servers` and `tool_discovery` importable."""
    servers = _Servers(PACKAGE, "The tools of MCP servers: one package a server, one file a tool.")
    servers.__path__ = [layout.SERVERS]
    servers.__spec__ = ModuleSpec(PACKAGE, None, is_package=True)
    servers.__spec__.submodule_search_locations = servers.__path__
    sys.modules[PACKAGE] = servers
    sys.meta_path.insert(0, _Finder())
    discovery = types.ModuleType("tool_discovery", "Finding and calling tools of MCP servers.")
    discovery.__dict__.update(NAMES)
    discovery.__dict__["__all__"] = list(NAMES)
    sys.modules[discovery.__name__] = discovery


def keep_up(made: int) -> bool:
    """Before a cell: read the files again if they are others than those that were imported.

    Returns whether they are.
    """
    if made == _made:
        return False
    forget_packages(made)
    return True


def forget_packages(made: int) -> None:
    """Have the next import read the files again, which have changed. `made` is their generation."""
    global _made
    _made = made
    importlib.invalidate_caches()
    servers = sys.modules.get(PACKAGE)
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
        if servers is not None:
            servers.__dict__.pop(name.partition(".")[2], None)
