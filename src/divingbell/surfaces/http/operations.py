"""Operations: what can be asked of the API, each with the scope that it takes and its types."""

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from divingbell.surfaces.auth import ScopeWord
from divingbell.surfaces.http import visitor as visitors
from divingbell.surfaces.http.answers import JSON
from divingbell.surfaces.http.problems import Refused, of_error
from divingbell.surfaces.http.quotas import MAX_BODY, Body, Gone, share_of
from divingbell.surfaces.http.service import Service
from divingbell.surfaces.http.visitor import Visitor
from divingbell.surfaces.http.wire import MAX_QUERY, Nothing

BASE = "/api/v1"
MAX_FIELDS = 20
T = TypeVar("T")


class Call:
    """One request for an operation."""

    __slots__ = ("cost", "receive", "scope", "service", "visitor")

    def __init__(self, service: Service, scope: Scope, receive: Receive) -> None:
        self.service = service
        self.scope = scope
        self.receive = receive
        self.visitor: Visitor = scope[visitors.KEY]
        self.cost = 0
        """Bytes of memory that its body takes, about: as it came, and parsed."""

    def parameter(self, name: str) -> str:
        """Return a part of the path."""
        value: str = self.scope["path_params"][name]
        return value

    def header(self, name: bytes) -> str | None:
        """Return a header, by its name in small letters.

        Raises:
            Refused: it is there twice.
        """
        found = [value for each, value in self.scope["headers"] if each == name]
        if len(found) > 1:
            raise Refused(400, "bad_request", f"the header {name.decode()} is there twice")
        return found[0].decode("latin-1") if found else None


Handler = Callable[[Call, Any], Awaitable[ASGIApp]]


@dataclass(frozen=True)
class Operation:
    """Something that can be asked for, by method and path."""

    method: str
    path: str
    """Below /api/v1."""
    need: ScopeWord
    handler: Handler
    """Its first line says what it does. It gets what was given, as its type says."""
    body: type[msgspec.Struct] | None = None
    """The type of the body, which is JSON."""
    query: type[msgspec.Struct] = Nothing
    """The type of what stands behind the `?`. Where there is a body, there is none of it."""
    answers: Any = None
    """The type of the answer; None where there is no content, or no JSON."""
    status: int = 200
    media_types: tuple[str, ...] = (JSON,)
    """Those of the answer."""

    @property
    def id(self) -> str:
        """Its name, which no other has."""
        return f"{self.handler.__module__.rpartition('.')[2]}.{self.handler.__name__}"

    async def answer(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with what it asks for or with a problem."""
        try:
            visitors.check(scope, self.need)
            call = Call(service, scope, receive)
            query = parsed_query(scope["query_string"], self.query)
            given = query if self.body is None else await read(call, self.body)
            found = await self.handler(call, given)
        except Gone:
            raise
        except Exception as error:
            found = of_error(error)
        await found(scope, receive, send)


class _Place:
    """All operations of one path."""

    def __init__(self, service: Service, operations: Iterable[Operation]) -> None:
        self._service = service
        self._by_method = {each.method: each for each in operations}
        if "GET" in self._by_method:
            self._by_method.setdefault("HEAD", self._by_method["GET"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._by_method.get(scope["method"])
        if operation is None:
            allowed = {"Allow": ", ".join(sorted(self._by_method))}
            words = f"{scope['path']} takes {allowed['Allow']}"
            await Refused(405, "method_not_allowed", words, allowed)(scope, receive, send)
            return
        await operation.answer(self._service, scope, receive, send)


def routes(service: Service, operations: Iterable[Operation]) -> list[Route]:
    """Return the routes of operations, one a path."""
    places: dict[str, list[Operation]] = {}
    for each in operations:
        places.setdefault(each.path, []).append(each)
    return [Route(BASE + path, _Place(service, found)) for path, found in places.items()]


async def read(call: Call, kind: type[T], most: int = MAX_BODY) -> T:
    """Return the body of a request, parsed. `most` is the most bytes that it may have.

    Raises:
        Refused: it is too large, no JSON, or something else than was asked for.
    """
    length = call.header(b"content-length")
    if length is not None and length.isdigit() and int(length) > most:
        words = f"a body may have {most:,} bytes at most: send less at once"
        raise Refused(413, "too_large", words)
    with closing(Body(call.receive, share_of(call.scope).bodies, most)) as body:
        raw = await body.read()
        call.cost = body.cost
        media_type = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
        if raw and media_type != JSON:
            words = "send the body as JSON, with `Content-Type: application/json`"
            raise Refused(415, "unsupported_media_type", words)
        return parsed(raw or b"{}", kind)


def parsed(raw: bytes, kind: type[T]) -> T:
    """Return JSON as a type of ours.

    Raises:
        Refused: it is none, or something else.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, "invalid_request", f"the body is not as it should be: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "invalid_request", f"the body is no JSON: {error}") from None


def parsed_query(raw: bytes, kind: type[T]) -> T:
    """Return what stands behind the `?` of an address as a type of ours.

    Raises:
        Refused: it is something else.
    """
    if len(raw) > MAX_QUERY * 4:
        raise Refused(414, "too_large", "the address is too long")
    try:
        pairs = _pairs(raw) if raw else []
        given = dict(pairs)
        if len(given) != len(pairs):
            raise ValueError("a name stands there twice")
        return msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        words = f"the parameters of the address are not as they should be: {error}"
        raise Refused(400, "invalid_request", words) from None


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    text = raw.decode("ascii")
    return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")


_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def parameters(path: str) -> list[str]:
    """Return the names of the variable parts of a path."""
    return _PARAMETER.findall(path)
