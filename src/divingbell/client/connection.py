"""The connection to a service: requests, and its problems as the library's own errors."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import Any

import httpx2

from divingbell import errors
from divingbell.errors import (
    DivingbellError,
    RateExceeded,
    ServiceRefused,
    ServiceUnreachable,
    SessionClosed,
)

API = "/api/v1"
CONNECT_TIMEOUT = 10.0
"""Seconds until a service answers at all; a cell may take as long as it may."""
MAX_MESSAGE = 2_000
NOT_FOUND = "not_found"
"""The code for a session that is not there, or not any more. Files have a code of their own."""


def _kinds(kind: type[DivingbellError]) -> Iterator[type[DivingbellError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


class Connection:
    """Sends requests of one user to one service."""

    def __init__(self, url: str, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/") + API,
            headers=headers,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=None),
        )
        self._url = url

    async def close(self) -> None:
        """End every connection. May be called again."""
        await self._http.aclose()

    async def send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """Send a request and return its answer, whole.

        Raises:
            DivingbellError: the service has refused it, by the error that the library raises.
            ServiceUnreachable: there is no answer.
        """
        with self._translated():
            response = await self._http.request(method, path, **request)
        _check(response)
        return response

    async def json(self, method: str, path: str, **request: Any) -> Any:
        """Send a request and return the JSON of its answer. Raises what `send` does."""
        response = await self.send(method, path, **request)
        try:
            return response.json()
        except ValueError:
            raise ServiceRefused(f"{self._url} is no Divingbell: it answered no JSON") from None

    async def items(self, path: str, /, **parameters: str) -> AsyncIterator[Any]:
        """Yield what a list has, page by page. Raises what `send` does."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.json("GET", path, params=parameters | _cursor(cursor))
            for item in page["items"]:
                yield item
            cursor = page.get("next")

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, **request: Any
    ) -> AsyncGenerator[httpx2.Response, None]:
        """Send a request, and read its answer as it comes. Raises what `send` does."""
        with self._translated():
            async with self._http.stream(method, path, **request) as response:
                if response.is_error:
                    await response.aread()
                _check(response)
                yield response

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx2.InvalidURL as error:
            raise ServiceRefused(f"{self._url!r:.200} is no address: {error}") from None
        except httpx2.TransportError as error:
            words = str(error) or type(error).__name__
            raise ServiceUnreachable(
                f"{self._url} does not answer ({words}): "
                "is `divingbell serve --http` running there?"
            ) from None


def _cursor(cursor: str) -> dict[str, str]:
    return {"cursor": cursor} if cursor else {}


def _check(response: httpx2.Response) -> None:
    if response.is_error:
        raise _error(response)


def _error(response: httpx2.Response) -> DivingbellError:
    problem = _problem(response)
    code = problem.get("code")
    words = str(problem.get("detail") or problem.get("title") or response.reason_phrase)
    words = words[:MAX_MESSAGE]
    if code == RateExceeded.code:
        return RateExceeded(words, _seconds(response.headers.get("Retry-After", "")))
    if code == NOT_FOUND:
        return SessionClosed(words)
    for kind in _kinds(errors.DivingbellError):
        if kind.code == code and kind is not errors.ToolFailed:
            return kind(words)
    return ServiceRefused(f"{response.status_code}: {words}")


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _problem(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        problem = json.loads(response.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
