"""Files that clients read as resources: beside the loop, one at a time, counted until sent."""

import asyncio
import base64
import json
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell, Session
from divingbell.errors import FileRefused
from divingbell.shares.allowance import Allowance, Hold, counted
from divingbell.surfaces.mcp import file_reads
from divingbell.surfaces.mcp.file_reads import Reading
from tests.surfaces.http.test_quotas import client, url
from tests.surfaces.mcp.test_http import ANNE, HANDSHAKE
from tests.waiting import PATIENCE, until

__all__ = ["url"]
SIZE = 1 << 20
URI = "divingbell://sessions/default/files/big.bin"


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        await session.run(f"open('big.bin', 'wb').write(bytes(range(256)) * {SIZE >> 8})")
        yield session


async def test_a_large_file_is_encoded_beside_the_loop_and_in_pieces(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[tuple[int, int]] = []
    encode = base64.b64encode

    def watched(data: bytes) -> bytes:
        encoded.append((threading.get_ident(), len(data)))
        return encode(data)

    monkeypatch.setattr(base64, "b64encode", watched)
    found = await Reading().read("anne", session, "big.bin", False)
    assert base64.b64decode(found.content) == bytes(range(256)) * (SIZE >> 8)
    assert threading.get_ident() not in {thread for thread, _ in encoded}
    assert max(size for _, size in encoded) <= 1 << 18
    assert sum(size for _, size in encoded) == SIZE


async def test_one_file_of_a_user_is_read_at_a_time_and_others_do_not_wait(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = most = 0
    pieces = file_reads._pieces
    release = asyncio.Event()

    async def watched(*given: Any) -> list[bytes]:
        nonlocal at_work, most
        at_work, most = at_work + 1, max(most, at_work + 1)
        try:
            if not release.is_set() and given[1] == "big.bin":
                await release.wait()
            return await pieces(*given)
        finally:
            at_work -= 1

    monkeypatch.setattr(file_reads, "_pieces", watched)
    await session.run("open('small.txt', 'w').write('words')")
    all_of_them = Reading()
    reads = [
        asyncio.create_task(all_of_them.read("anne", session, "big.bin", False)) for _ in range(8)
    ]
    await until(lambda: at_work, "one is read")
    assert (await all_of_them.read("bert", session, "small.txt", True)) == ("words", True)
    assert most == 2
    release.set()
    assert len(await asyncio.gather(*reads)) == 8
    assert most == 2


async def test_so_many_reads_of_a_user_wait_and_no_more(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reads, "MAX_WAITING", 3)
    all_of_them = Reading()
    reads = [all_of_them.read("anne", session, "big.bin", False) for _ in range(10)]
    ended = await asyncio.gather(*reads, return_exceptions=True)
    refused = [str(each) for each in ended if isinstance(each, FileRefused)]
    assert len(refused) == 6  # one is read, three wait
    assert "wait for one to end" in refused[0]


async def test_a_read_waits_until_what_was_read_before_is_sent(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them, user = Reading(), Allowance(3 * SIZE)

    async def read() -> None:
        with counted(user):
            await all_of_them.read("anne", session, "big.bin", False)

    with counted(user):
        await all_of_them.read("anne", session, "big.bin", False)
        assert user.held > 4 * SIZE
        monkeypatch.setattr(file_reads, "ROOM_TIMEOUT", 0.0)
        with pytest.raises(FileRefused, match="take those answers first"):
            await read()
        monkeypatch.setattr(file_reads, "ROOM_TIMEOUT", PATIENCE)
        waiting = asyncio.create_task(read())
    await waiting
    assert user.held == 0


async def test_nothing_is_read_for_whoever_has_left(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(Allowance(SIZE)) as hold:
        hold.close()
        with pytest.raises(FileRefused, match="has left"):
            await Reading().read("anne", session, "big.bin", False)


async def test_what_is_mostly_control_characters_is_no_text(session: Session) -> None:
    await session.run(
        "open('a.txt', 'w').write(chr(1) * 9)\nopen('b.txt', 'w').write(chr(27) + '[1mbold words')"
    )
    assert await Reading().read("anne", session, "a.txt", True) == ("AQEBAQEBAQEB", False)
    assert await Reading().read("anne", session, "b.txt", True) == ("\x1b[1mbold words", True)


def _request(method: str, revision: str, params: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    about = {"protocolVersion": revision, "clientInfo": {"name": "test", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
    meta["io.modelcontextprotocol/clientCapabilities"] = {}
    params = params if revision < "2026" else {**params, "_meta": meta}
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": method}
    headers["Mcp-Name"] = params.get("uri") or params["name"]
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return headers, json.dumps(body).encode()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_file_counts_for_its_user_until_the_client_has_taken_it(
    url: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Allowance] = []
    room = file_reads._room

    async def watched(hold: Hold, size: int) -> None:
        held.append(hold._allowance)
        await room(hold, size)

    monkeypatch.setattr(file_reads, "_room", watched)
    own: dict[str, str] = {}
    async with client(ANNE) as anne:
        if revision < "2026":
            own["Mcp-Session-Id"] = (await anne.post(url, json=HANDSHAKE)).headers["mcp-session-id"]
        code = f"open('big.bin', 'wb').truncate({file_reads.MAX_READ})"
        given = {"name": "execute_python", "arguments": {"code": code}}
        headers, body = _request("tools/call", revision, given)
        await anne.post(url, content=body, headers=headers | own)
        headers, body = _request("resources/read", revision, {"uri": URI})
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect((httpx2.URL(url).host, httpx2.URL(url).port))
        sent = dict(anne.headers) | headers | own
        sent |= {"host": "localhost", "Content-Length": str(len(body)), "Connection": "close"}
        sent.pop("connection", None)
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        reader, writer = await asyncio.open_connection(sock=line, limit=4096)
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).split()[1] == b"200"
            await until(lambda: held, "it is read")
            for _ in range(10):
                await anne.post(url, content=b"{}")
            assert held[0].held > 4 * file_reads.MAX_READ
            while await reader.read(1 << 20):
                pass
        await until(lambda: held[0].held == 0, "it is given back")
        writer.close()
