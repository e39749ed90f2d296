"""Ids of connections: they name their replica outside, and nobody's inside."""

import pickle
from typing import Any

import pytest

from divingbell.scale.replica_ids import HEADER, ReplicaIds, header_in, replica_of


class Inner:
    """An application that opens connections, and keeps what it was asked."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        headers = [(b"Mcp-Session-Id", b"0123"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"mcp-session-id: 0123"})


async def asked(given: bytes | None) -> tuple[Inner, list[Any]]:
    inner, sent = Inner(), []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"accept", b"a.b")] + ([] if given is None else [(HEADER, given)])
    scope = {"type": "http", "headers": headers}
    await ReplicaIds(inner, "r1")(scope, None, send)  # type: ignore[arg-type]
    assert scope["headers"] == headers
    return inner, sent


async def test_an_id_goes_out_with_the_name_and_comes_in_without() -> None:
    inner, sent = await asked(b"r1.0123")
    assert dict(inner.scope["headers"])[HEADER] == b"0123"
    assert (b"Mcp-Session-Id", b"r1.0123") in sent[0]["headers"]
    assert sent[1]["body"] == b"mcp-session-id: 0123"
    assert replica_of("r1.0123") == "r1"


@pytest.mark.parametrize("given", [b"r2.0123", b"r11.0123", b"0123", b"", b".", b"\xff.\xff"])
async def test_an_id_of_another_stays_as_it_is(given: bytes) -> None:
    inner, _ = await asked(given)
    assert dict(inner.scope["headers"])[HEADER] == given


async def test_who_has_no_connection_has_none_inside() -> None:
    inner, _ = await asked(None)
    assert HEADER not in dict(inner.scope["headers"])
    assert replica_of("") == "" and replica_of("0123") == ""


class Exploding:
    """A value that does something when it is brought to life."""

    def __reduce__(self) -> Any:
        return print, ("alive",)


@pytest.mark.parametrize("value", [b"r1.0123", b"", b"x" * 70_000])
def test_a_header_is_read_out_of_a_pickled_request(value: bytes, capsys: Any) -> None:
    headers = [(b"host", b"a"), (b"Mcp-Session-Id", value), (b"accept", b"mcp-session-id")]
    request = pickle.dumps({"path": "/mcp", "odd": Exploding(), "headers": headers})
    assert header_in(request, HEADER) == value.decode()
    assert header_in(request, b"authorization") == ""
    assert capsys.readouterr().out == ""
