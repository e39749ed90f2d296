"""The parameters of a function: their JSON Schema, and JSON arguments made into values of theirs.

pydantic reads the annotations. It takes a sixth of a second to load: only where there are functions
is this module imported.
"""

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.functions.tool_context import ToolContext

REQUIRED = inspect.Parameter.empty
_UNCLEAR = (REQUIRED, Any, object)
_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
MOST_HASHED = 1_000
"""Items of a list, where one becomes a set of something else than text. Numbers can be chosen so
that all have the same hash. Measured: 1,000 of them take 30 ms, and 20,000 2.4 s, in one call that
nothing else in the process can interrupt."""
Call = tuple[list[Any], dict[str, Any]]
"""Values by their places, and by their names."""


class _Schema(GenerateJsonSchema):
    """JSON Schema without what says nothing: titles that repeat names, warnings about defaults."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Parameters:
    """The parameters of one function that code can set, and those that get the context."""

    def __init__(
        self, name: str, function: Callable[..., Any], descriptions: Mapping[str, str]
    ) -> None:
        """Read the signature.

        Raises:
            InvalidInput: it has none, or a parameter that JSON can't be made into.
        """
        signature = _signature(name, function)
        hints = _hints(name, function)
        self._fields: list[tuple[inspect.Parameter, str | None]] = []
        """Each parameter with its field of the model; None for the context."""
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(_settable(name, function, signature)):
            annotation = hints.get(parameter.name, Any)
            if _is_context(annotation):
                self._fields.append((parameter, None))
                continue
            # Names of our own: a parameter may be called `schema` or `_id`, which models can't.
            field = f"p{number}"
            self._fields.append((parameter, field))
            fields[field] = (annotation, _field(parameter, annotation, descriptions))
        self._model = _model(name, fields)
        self._hashes_numbers = _hashes_numbers(self._model.__pydantic_core_schema__)
        self.schema = _input_schema(name, self._model)
        self.output_schema = _output_schema(hints.get("return", REQUIRED))

    def bound(self, given: Mapping[str, Any], context: ToolContext) -> Call:
        """Return the values for a call. What is not given is left to the function's own default.

        Raises:
            pydantic.ValidationError: an argument can't become what its annotation says.
            ToolFailed: it has too many items to become a set, or a dictionary by numbers.
        """
        if self._hashes_numbers:
            _check_counts(context.tool, given)
        model = self._model.model_validate(given)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter, field in self._fields:
            if field is None:
                value: Any = context
            elif field in model.model_fields_set:
                value = getattr(model, field)
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                value = parameter.default
            else:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[parameter.name] = value
        return positional, named


def _hashes_numbers(schema: Any) -> bool:
    """Whether a part of it becomes a set, or the keys of a dict, of something else than text."""
    if isinstance(schema, list | tuple):
        return any(map(_hashes_numbers, schema))
    if not isinstance(schema, dict):
        return False
    hashed = {"set": "items_schema", "frozenset": "items_schema", "dict": "keys_schema"}
    kind = schema.get("type")
    inner = schema.get(hashed[kind]) if isinstance(kind, str) and kind in hashed else None
    if kind in ("set", "frozenset") and inner is None:
        return True
    # JSON's own keys are texts, and stay that where any will do.
    safe = ("str", "any") if kind == "dict" else ("str",)
    if inner is not None and inner.get("type") not in safe:
        return True
    return any(map(_hashes_numbers, schema.values()))


def _check_counts(tool: str, given: Any) -> None:
    waiting = [given]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list | dict):
            continue
        if len(value) > MOST_HASHED:
            raise ToolFailed(
                f"{tool}: an argument has {len(value):,} items, and this function takes at most "
                f"{MOST_HASHED:,} at a time: send fewer",
                "tool_arguments",
            )
        waiting += value.values() if isinstance(value, dict) else value


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        raise InvalidInput(
            f"{name}: Python knows no signature of it, as of some functions that are written in C: "
            "give a function of your own that calls it"
        ) from None


def _hints(name: str, function: Callable[..., Any]) -> Mapping[str, Any]:
    """The annotations, also those that are written as text."""
    inner = function.func if isinstance(function, functools.partial) else function
    annotated = inspect.unwrap(inner if inspect.isroutine(inner) else type(inner).__call__)
    try:
        return get_type_hints(annotated, include_extras=True)
    except Exception as error:  # an annotation as text may be any expression
        raise InvalidInput(
            f"{name}: an annotation can't be read ({type(error).__name__}: {error}): "
            "import what it names at the top of the module, not only for type checkers"
        ) from None


def _settable(
    name: str, function: Callable[..., Any], signature: inspect.Signature
) -> list[inspect.Parameter]:
    """The parameters, without those that a partial function has set: code must not change them."""
    bound = function.keywords if isinstance(function, functools.partial) else ()
    found = [each for each in signature.parameters.values() if each.name not in bound]
    for each in found:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise InvalidInput(
                f"{name}: `{each}` takes any arguments, and a tool names each of them: "
                "write the parameters out, or take one list or dict"
            )
        if isinstance(each.default, FieldInfo):
            raise InvalidInput(
                f"{name}: the default of {each.name!r} is a Field: write "
                f"`{each.name}: Annotated[…, Field(…)] = default`"
            )
    return found


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return ToolContext in get_args(annotation)
    return annotation is ToolContext


def _field(
    parameter: inspect.Parameter, annotation: Any, descriptions: Mapping[str, str]
) -> FieldInfo:
    default = ... if parameter.default is REQUIRED else parameter.default
    own = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    words: dict[str, Any] = {}
    if not any(getattr(each, "description", None) for each in own):
        words = {"description": descriptions.get(parameter.name)}
    found: FieldInfo = Field(default, alias=parameter.name, **words)
    return found


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    try:
        return create_model(name, __config__=_CONFIG, **fields)
    except PydanticUserError as error:
        raise _unusable(name, error) from None


def _input_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        raise _unusable(name, error) from None
    schema.pop("title", None)
    return schema


def _unusable(name: str, error: PydanticUserError) -> InvalidInput:
    first = str(error).partition("\n")[0]
    return InvalidInput(
        f"{name}: an annotation is of a type that JSON can't be made into ({first}): "
        "use plain types, dates, enums, dataclasses or pydantic models"
    )


def _output_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of what is returned, as an object; None where the annotation does not tell."""
    if annotation in _UNCLEAR:
        return None
    try:
        schema = TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Schema)
    except PydanticUserError:
        return None
    if schema.get("type") == "object":
        return schema
    shared = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    # As Python's SDKs of the protocol do, which knows only objects: see Tool.wraps_result.
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
        **shared,
    }
