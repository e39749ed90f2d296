"""Failures of servers, in words: the SDK's and the network's errors are translated here."""

import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Protocol

import anyio
import httpx2
import mcp_types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError
from pydantic import ValidationError

from divingbell import text
from divingbell.errors import ToolFailed, ToolFailure
from divingbell.gateway.schema.outcome import UNREADABLE
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport.messages import NO_MESSAGES
from divingbell.settings.servers import Server

MAX_WORDS = 2000
MAX_REASON = 500
NO_WORDS = "Server returned an error response"
"""The SDK's message for a status of HTTP that came without an error of MCP."""
_RELATIVE_FILE = re.compile(
    r"(?:--?[\w-]{1,60}=)?(\w[\w.-]{0,200}(?:/[\w.-]{1,200}){0,20}\.(?:cfg|conf|csv|db|duckdb|env|ini|"
    r"js|json|jsonl|log|md|mjs|parquet|pdf|pem|py|sh|sql|sqlite|sqlite3|toml|ts|txt|xlsx|xml|ya?ml))"
)
"""An argument that is most likely a file, and is relative."""
_FINAL = ("did not answer within", NO_MESSAGES)
"""Reasons that another way of connecting would end for as well."""
_MAYBE = "it may have done what it was asked, or not"


class SignInNeeded(Exception):
    """A person has to sign in first."""

    expected = True


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a connection: it could not be made, or is over."""

    words: str
    was_ready: bool = False
    """Whether it had worked before."""
    final: bool = False
    """Whether another way of connecting would fail as well."""
    needs_person: bool = False


class _Connection(Protocol):
    @property
    def status(self) -> int | None: ...

    async def reason(self) -> str | None: ...


async def why(
    error: Exception, connection: _Connection, server: Server, ready: bool, redactor: Redactor
) -> Failure:
    """Return why a connection failed, in words that hold no secret and hide nothing."""
    failure = await _failure(error, connection, server, ready)
    hint = "" if ready else _advice_about_paths(server)
    return replace(failure, words=readable(failure.words, redactor, MAX_REASON) + hint)


async def _failure(
    error: Exception, connection: _Connection, server: Server, ready: bool
) -> Failure:
    cause = root(error)
    if isinstance(cause, SignInNeeded):
        return Failure(str(cause), ready, final=True, needs_person=True)
    if isinstance(cause, ToolFailed):
        return Failure(str(cause), ready, final=True)
    known = await connection.reason()
    if isinstance(cause, TimeoutError):
        words = f"it did not answer within {server.start_timeout:g} seconds of its start"
        return Failure(known or words, ready, final=True)
    if known is not None:
        return Failure(known, ready, final=any(words in known for words in _FINAL))
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return Failure(
            f"nothing answers at {server.address} ({_error_in_short(cause)})", ready, final=True
        )
    return Failure(_refusal(cause, connection.status, server), ready)


def failed_call(
    error: Exception,
    what: str,
    limit: float,
    redactor: Redactor,
    *,
    lost: str | None,
    status: int | None,
) -> ToolFailed:
    """Return the error for a call that brought no result; `lost` is why its connection is over."""
    cause = root(error)

    def failed(words: str, code: ToolFailure = "tool_error") -> ToolFailed:
        return ToolFailed(readable(words, redactor), code)

    if isinstance(cause, ToolFailed):
        return failed(str(cause), cause.code)
    if isinstance(cause, TimeoutError):
        return failed(
            f"{what} took longer than {limit:g} seconds and was cancelled", "tool_timeout"
        )
    gone = isinstance(cause, anyio.ClosedResourceError | anyio.BrokenResourceError)
    for words in UNREADABLE:  # the SDK puts words of its own around ours
        if isinstance(cause, MCPError) and words in cause.message:
            return failed(f"{what}: {words}", "tool_result")
    if isinstance(cause, MCPError):
        if lost is not None or cause.code == mcp_types.CONNECTION_CLOSED:
            gone = True
        elif cause.code == mcp_types.INVALID_PARAMS:
            return failed(f"{what}: {cause.message}", "tool_arguments")
        elif cause.code == mcp_types.PARSE_ERROR:
            return failed(f"{what}: {cause.message}", "tool_result")
        elif status is not None and cause.message == NO_WORDS:
            return failed(f"{what}: {_status_in_words(status)}", "tool_unavailable")
        else:
            return failed(f"{what}: {cause.message}")
    if gone:
        reason = f": {lost}" if lost else ""
        return failed(
            f"{what}: the server died during the call; {_MAYBE}{reason}", "tool_unavailable"
        )
    if isinstance(cause, ValidationError):
        return failed(f"{what} answered with something that is no result of MCP", "tool_result")
    return failed(f"{what}: {_error_in_short(cause)}")


def is_closed(error: Exception) -> bool:
    """Whether a call ended because its whole connection did."""
    if not isinstance(error, MCPError):
        return False
    return error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed"


def root(error: BaseException) -> BaseException:
    """Return the first error of a group that says something."""
    while isinstance(error, BaseExceptionGroup):
        speaking = [one for one in error.exceptions if not _says_nothing(one)]
        error = (speaking or list(error.exceptions))[0]
    return error


def readable(words: str, redactor: Redactor, most: int = MAX_WORDS) -> str:
    """Return words of a server without its secrets, with all that they hide made visible, cut."""
    return text.visible(redactor.clean(words), most)


def _says_nothing(error: BaseException) -> bool:
    return isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)


def _refusal(cause: BaseException, status: int | None, server: Server) -> str:
    if isinstance(cause, OAuthFlowError):
        return f"signing in failed: {cause}; run `divingbell login {server.name}`"
    if isinstance(cause, httpx2.HTTPStatusError):
        return _status_in_words(cause.response.status_code)
    if isinstance(cause, MCPError):
        if status is not None and cause.message in (NO_WORDS, "Not Found"):
            return _status_in_words(status)
        return f"it refused: {cause.message}"
    if isinstance(cause, ValidationError):
        return (
            "it sends something that is no message of MCP; check that its entry names an MCP server"
        )
    return _error_in_short(cause)


def _advice_about_paths(server: Server) -> str:
    """Return advice about a path in the arguments that was meant for another folder than `/`."""
    if server.transport != "stdio" or server.cwd is not None:
        return ""
    for word in server.args:
        if found := _RELATIVE_FILE.fullmatch(word):
            path = found[1]
            return (
                f". It looks for its argument {path} in /, where servers start: write ./{path}, "
                "which means the folder of the file with this list, or set `cwd`"
            )
    return ""


def _status_in_words(status: int) -> str:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "no status of HTTP"
    hint = "; check the headers of its entry" if status in (401, 403) else ""
    hint = "; check the address of its entry" if status in (404, 405) else hint
    return f"it answered with {status} ({phrase}){hint}"


def _error_in_short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
