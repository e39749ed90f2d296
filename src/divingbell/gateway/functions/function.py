"""A function of this program, as a tool."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.functions.tool_context import ToolContext

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_PROBLEMS = 3
MAX_TOLD = 100
"""Problems of one call that are put into words: of a list of wrong values each is one, and pydantic
writes all of them down or none."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class HostFunction:
    """A function of this program that code calls as `servers.host.NAME`.

    Its signature, annotations and docstring make the definition that code and models see; defaults
    are in it, so none of them may be a secret.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        direct: bool = False,
    ) -> None:
        """Take a function, plain or async, a bound method, a partial or an object with `__call__`.

        `name` and `description` take the place of its own. `read_only` is a hint for whoever reads
        the definition: that a call changes nothing. `direct`: in hybrid mode clients of the MCP
        server see it as a tool of their own, too.

        Raises:
            InvalidInput: it can't be a tool; the message says what to change.
        """
        # pydantic takes a sixth of a second to load, and many have no functions.
        from divingbell.gateway.functions.documentation import documentation_of
        from divingbell.gateway.functions.parameters import Parameters

        self.function = function
        self.direct = direct
        self.name = _name(function, name)
        inner = function.func if isinstance(function, functools.partial) else function
        kinds = (inner, type(inner).__call__)
        if any(map(inspect.isasyncgenfunction, kinds)):
            raise InvalidInput(f"{self.name} yields asynchronously: return a list instead")
        self.is_async = any(map(inspect.iscoroutinefunction, kinds))
        words = documentation_of(inner)
        self._parameters = Parameters(self.name, function, words.parameters)
        self.definition: Mapping[str, Any] = {
            "name": self.name,
            "description": words.description if description is None else description,
            "inputSchema": self._parameters.schema,
            "outputSchema": self._parameters.output_schema,
            "annotations": None if read_only is None else {"readOnlyHint": read_only},
        }
        """As `tools/list` of the protocol gives it."""

    def is_same(self, other: "HostFunction") -> bool:
        """Whether another one calls the same function by the same definition."""
        return self.function == other.function and self.definition == other.definition

    def bound(
        self, given: Mapping[str, Any], context: ToolContext
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return JSON arguments as values of the annotated types, by place and by name.

        Raises:
            ToolFailed: one can't become what its annotation says.
        """
        from pydantic import ValidationError

        try:
            return self._parameters.bound(given, context)
        except ValidationError as error:
            raise ToolFailed(f"{context.tool}: {_problems(error)}", "tool_arguments") from None


def _problems(error: "ValidationError") -> str:
    count = error.error_count()
    if count > MAX_TOLD:
        return f"{count:,} values do not fit their annotations"
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found[:MAX_PROBLEMS]
    )


Tools = Sequence[Callable[..., Any] | HostFunction]
"""Functions, as they are or as tools with a name and a description of their own."""


def functions_of(tools: Tools) -> list[HostFunction]:
    """Return functions as tools, each once.

    Raises:
        InvalidInput: one of them can't be a tool, or two have the same name.
    """
    made = [each if isinstance(each, HostFunction) else HostFunction(each) for each in tools]
    check_names(made)
    return made


def check_names(functions: Iterable[HostFunction], taken: Iterable[str] = ()) -> None:
    """Raise InvalidInput if two functions have the same name, or one that is taken."""
    known = set(taken)
    for each in functions:
        if each.name in known:
            raise InvalidInput(
                f"there is a function {each.name!r} already: give this one another name with "
                "HostFunction(function, name=…), or remove the other one with remove_tool"
            )
        known.add(each.name)


def _name(function: Callable[..., Any], given: str | None) -> str:
    if not callable(function) or inspect.isclass(function):
        raise InvalidInput(f"a tool is a function, not {function!r:.80}")
    inner = function.func if isinstance(function, functools.partial) else function
    name = given if given is not None else getattr(inner, "__name__", None)
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{function!r:.80} has no name that code could call it by (letters, digits and `_`, at "
            "most 64): give it one with HostFunction(function, name=…)"
        )
    return name
