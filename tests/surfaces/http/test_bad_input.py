"""Bad input on every operation: paths that lead elsewhere, bodies that are something else or have
no end, events that nobody has, a disk that is full, rates that are used up."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.http import event_log
from divingbell.surfaces.http.application import OPERATIONS
from divingbell.surfaces.http.operations import BASE, Operation, parameters
from tests.audit.test_log import full
from tests.surfaces.http.serving import ANNE, EVENTS, Site, Talking, heard, served
from tests.waiting import PATIENCE, until

JSON = {"Content-Type": "application/json"}
ELSEWHERE = (
    "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%2fetc%2fpasswd",
    "..%5c..%5cetc%5cpasswd", "%00", "a%00b", "%ff", "%0a", "....%2f%2f", "x%2f..%2f..%2fy",
    "%252e%252e%252fetc%252fpasswd", "~", "*", "a" * 5_000,
)  # fmt: skip
ODD = ("~", "*", "....%2f%2f", "..%5c..%5cetc%5cpasswd", "%ff", "%252e%252e%252fetc%252fpasswd")
"""Names of files like any other, below the workspace."""
LEAVING = 40
LARGE = 1 << 30


@pytest.fixture(scope="module")
async def site(bell: Divingbell) -> AsyncIterator[Site]:
    async with served(bell, make_model=Talking().made) as site:
        async with site.client() as anne:
            assert (await anne.post(f"{BASE}/sessions", json={"id": "pearl"})).status_code == 201
            await anne.put(f"{BASE}/sessions/pearl/files/pearl.txt", content=b"here")
        yield site


def _places() -> list[tuple[Operation, str]]:
    return [(each, name) for each in OPERATIONS for name in parameters(each.path)]


GIVEN = {
    "execute": {"code": "1"}, "complete": {"code": "a", "position": 1}, "rollback": {},
    "say": {"text": "hello"}, "answer": {"word": "yes"},
}  # fmt: skip


def _body(operation: Operation) -> dict[str, Any] | None:
    if operation.body is None:
        return None
    if operation.path.startswith("/conversations") and operation.handler.__name__ == "answer":
        return {"id": "q-1", "action": "accept"}
    return GIVEN[operation.handler.__name__]


@pytest.mark.parametrize(
    ("operation", "name"), _places(), ids=lambda each: getattr(each, "path", each)
)
async def test_a_name_in_the_path_that_leads_elsewhere_leads_nowhere(
    anne: httpx2.AsyncClient, operation: Operation, name: str
) -> None:
    known = {"id": "pearl", "path": "pearl.txt", "name": "pearl", "server": "host", "tool": "x"}
    before = (await anne.get(f"{BASE}/sessions/pearl/files")).json()
    for elsewhere in ELSEWHERE:
        names = known | {name: elsewhere}
        path = re.sub(r":\w+\}", "}", operation.path).format_map(names)
        given: dict[str, Any] = {"json": body} if (body := _body(operation)) is not None else {}
        if operation.method == "PUT":
            given = {"content": b"mine"}
        answer = await anne.request(operation.method, BASE + path, **given)
        is_a_name = name == "path" and elsewhere in ODD
        if operation.method == "PUT" and is_a_name:  # odd, and below the workspace
            assert answer.status_code == 201
            assert (await anne.delete(BASE + path)).status_code == 204
        else:
            refused = (400, 404, 405, 413, 414, 422, 431)
            assert answer.status_code in refused, (elsewhere[:40], answer.status_code, answer.text)
        assert "root:" not in answer.text and "Traceback" not in answer.text
    assert (await anne.get(f"{BASE}/sessions/pearl/files")).json() == before


OF_NAMES = [
    ("GET", "/jupyter/api/kernels/{}"), ("POST", "/jupyter/api/kernels/{}/interrupt"),
    ("POST", "/jupyter/api/kernels/{}/restart"), ("GET", "/jupyter/api/kernels/{}/channels"),
    ("GET", "/jupyter/api/kernelspecs/{}"), ("GET", "/jupyter/api/sessions/{}"),
    ("PATCH", "/jupyter/api/sessions/{}"), ("DELETE", "/jupyter/api/sessions/{}"),
    ("GET", "/outputs/{}/1/0"), ("GET", "/outputs/x-1/{}/0"), ("GET", "/outputs/x-1/1/{}"),
]  # fmt: skip
"""Addresses outside the API that have a name in them."""


@pytest.mark.parametrize(("method", "path"), OF_NAMES, ids=" ".join)
async def test_a_name_in_another_address_that_leads_elsewhere_leads_nowhere(
    anne: httpx2.AsyncClient, method: str, path: str
) -> None:
    for elsewhere in ELSEWHERE:
        given = {"json": {}} if method == "PATCH" else {}
        answer = await anne.request(method, path.format(elsewhere), **given)
        refused = (400, 404, 405, 414, 431)
        assert answer.status_code in refused, (elsewhere[:40], answer.status_code, answer.text)
        assert "root:" not in answer.text and "Traceback" not in answer.text


async def test_what_is_no_output_of_a_run_is_not_there(anne: httpx2.AsyncClient) -> None:
    """Whatever kind of event an address names."""
    code = "print(1); import sys; sys.stderr.write('2'); clear_output(); 1/0"
    ran = await anne.post(f"{BASE}/sessions/pearl/execute", json={"code": code})
    made = (await anne.post(f"{BASE}/conversations", json={})).json()["id"]
    await anne.post(f"{BASE}/conversations/{made}/messages", json={"text": "hello"})
    for source in (ran.json()["execution"], made):
        for event in range(12):
            framed = {"Sec-Fetch-Dest": "iframe"}
            answer = await anne.get(f"/outputs/{source}/{event}/0", headers=framed)
            assert answer.status_code == 404, (source, event, answer.text)
    await anne.delete(f"{BASE}/conversations/{made}")


# Bodies

WITH_BODY = [
    *(
        (each.method, BASE + re.sub(r"\{(\w+)(:\w+)?\}", "pearl", each.path))
        for each in OPERATIONS
        if each.body is not None
    ),
    ("POST", "/login"),
    ("POST", "/jupyter/api/kernels"),
    ("POST", "/jupyter/api/sessions"),
]
OTHER = (
    b"{", b"null", b"[]", b"7", b'"text"', b"\xff\xfe", b"\x00", b"[" * 100_000,
    b'{"code":' * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"code":["1"],"text":{},"word":7,"token":[],"id":[],"session":{},"name":{},"path":[],'
    b'"version":"x","mode":9,"action":0,"kernel":[]}',
)  # fmt: skip


@pytest.mark.parametrize(("method", "path"), WITH_BODY, ids=" ".join)
async def test_a_body_that_is_something_else_or_very_deep_is_refused(
    anne: httpx2.AsyncClient, method: str, path: str
) -> None:
    for body in OTHER:
        answer = await anne.request(method, path, content=body, headers=JSON)
        assert answer.status_code in (400, 413), (body[:40], answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    if not path.startswith("/jupyter"):  # its clients do not all say what they send
        for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x"):
            answer = await anne.request(method, path, content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415, kind


@pytest.mark.parametrize("chunked", [False, True], ids=["told", "chunked"])
@pytest.mark.parametrize(
    ("method", "path"),
    [*WITH_BODY, ("POST", "/mcp"), ("PUT", f"{BASE}/sessions/pearl/files/large.bin")],
    ids=" ".join,
)
async def test_a_gigabyte_is_not_taken(
    site: Site, anne: httpx2.AsyncClient, method: str, path: str, chunked: bool
) -> None:
    kind = "application/octet-stream" if method == "PUT" else "application/json"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANNE}\r\n"
        f"Content-Type: {kind}\r\nAccept: application/json, text/event-stream\r\n"
    )
    head += "Transfer-Encoding: chunked\r\n\r\n" if chunked else f"Content-Length: {LARGE}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(head.encode())
    sending = asyncio.create_task(_pour(writer, chunked))
    try:
        async with asyncio.timeout(PATIENCE * 3):
            status = int((await reader.readline()).split()[1])
        assert status in (400, 413, 507), status
        assert not sending.done() or sending.result() < LARGE
    finally:
        sending.cancel()
        await asyncio.wait([sending])
        writer.transport.abort()
    listed = (await anne.get(f"{BASE}/sessions/pearl/files")).json()["items"]
    assert [each["path"] for each in listed] == ["pearl.txt"]


@pytest.mark.parametrize("chunked", [False, True], ids=["told", "chunked"])
@pytest.mark.parametrize(
    ("method", "path"),
    [*WITH_BODY, ("POST", "/mcp"), ("PUT", f"{BASE}/sessions/pearl/files/half.bin")],
    ids=" ".join,
)
async def test_a_body_that_is_cut_off_does_nothing_and_leaves_nothing(
    site: Site, anne: httpx2.AsyncClient, method: str, path: str, chunked: bool
) -> None:
    async def state() -> list[Any]:
        names = ("sessions", "executions", "conversations", "sessions/pearl/files")
        found = [(await anne.get(f"{BASE}/{name}")).json()["items"] for name in names]
        return [each.get("id") or each["path"] for items in found for each in items]

    shares, logins = site.app.door.shares, site.app.door.logins._known
    before, known = await state(), len(logins)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANNE}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    )
    half = b'{"code": "1", "text": "hello", "token": "' + b"x" * 200_000
    head += "Transfer-Encoding: chunked\r\n\r\n" if chunked else "Content-Length: 400000\r\n\r\n"
    body = b"%x\r\n%s\r\n" % (len(half), half) if chunked else half
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(head.encode() + body)
    await writer.drain()
    answered = asyncio.create_task(reader.read(1))  # some look at what comes before the end of it

    def has_begun() -> bool:
        return answered.done() or any(each.requests for each in shares.values())

    await until(has_begun, "it is under way")
    writer.transport.abort()
    await asyncio.wait([answered])

    def is_over() -> bool:
        return not any(each.requests or each.bodies.held for each in shares.values())

    await until(is_over, "all of its share is back")
    assert await state() == before and len(logins) == known


@pytest.mark.parametrize("what", ["a file", "events"])
async def test_a_client_that_leaves_half_way_leaves_nothing(
    site: Site, anne: httpx2.AsyncClient, what: str
) -> None:
    path = f"{BASE}/sessions/away/files/large.bin"
    if what == "a file":
        await anne.post(f"{BASE}/sessions", json={"id": "away"})
        await anne.put(path, content=bytes(32 << 20))
    where = path if what == "a file" else f"{BASE}/events"
    share, service = site.app.door.shares["anne"], site.app._service
    assert service is not None
    await until(lambda: not share.requests, "nothing is under way")
    descriptors = len(os.listdir("/proc/self/fd"))
    watching = len(service.bell.journal._watchers)
    for _ in range(LEAVING):
        async with site.client() as leaving, leaving.stream("GET", where) as answer:
            assert answer.status_code == 200
            await anext(answer.aiter_raw())
            assert share.requests == 1
        await until(lambda: not share.requests, "the request has ended")
    assert not service.pending._listening["anne"]
    assert len(service.bell.journal._watchers) == watching

    def is_closed() -> bool:
        # A few more may be those of sessions that wait to be asked for.
        return len(os.listdir("/proc/self/fd")) < descriptors + LEAVING

    await until(is_closed, "nothing is left open")


async def _pour(writer: asyncio.StreamWriter, chunked: bool) -> int:
    """Send up to a gigabyte; return how much of it was taken."""
    piece, sent = b"[" + b" " * ((1 << 20) - 1), 0
    frame = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
    with contextlib.suppress(ConnectionError):
        while sent < LARGE:
            writer.write(frame)
            await writer.drain()
            sent += len(piece)
    return sent


# Events


async def test_events_of_the_future_and_junk_are_refused(anne: httpx2.AsyncClient) -> None:
    ran = (await anne.post(f"{BASE}/sessions/pearl/execute", json={"code": "1"})).json()
    made = (await anne.post(f"{BASE}/conversations", json={})).json()
    for path in (f"executions/{ran['execution']}", f"conversations/{made['id']}"):
        where = f"{BASE}/{path}/events"
        for said, status in (
            ("999999", 422), ("9" * 16, 422), ("9" * 17, 400), ("-1", 400), ("1.5", 400),
            ("x", 400), ("1;2", 400), ("", 400), ("0x1", 400), (b"\xb2", 400),
        ):  # fmt: skip
            answer = await anne.get(where, headers={"Last-Event-ID": said})
            assert answer.status_code == status, (said, answer.text)
        for said, status in (("999999", 422), ("-1", 400), ("x", 400), (str(1 << 60), 400)):
            answer = await anne.get(where, params={"after": said})
            assert answer.status_code == status, (said, answer.text)
    await anne.delete(f"{BASE}/conversations/{made['id']}")
    gone = await anne.get(f"{BASE}/conversations/{made['id']}/events")
    assert gone.status_code == 404


async def test_events_that_are_kept_no_longer_are_told_as_a_gap(
    anne: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log.EventLog.__init__, "__defaults__", (4 << 20, 3))
    code = "for n in range(20): print(n, flush=True); import time; time.sleep(0.01)"
    ran = (await anne.post(f"{BASE}/sessions/pearl/execute", json={"code": code})).json()
    where = f"{BASE}/executions/{ran['execution']}/events"
    async with anne.stream("GET", where, headers={"Last-Event-ID": "1"}) as answer:
        found = [each async for each in heard(answer)]
    assert found[0].name == "gap" and found[-1].name == "done"
    assert found[0].number == 1 + found[0].data["missed"] == found[1].number - 1


async def test_an_execution_that_is_kept_no_longer_is_not_there(
    anne: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.surfaces.http.executions.MOST_OF_USER", 1)
    where = f"{BASE}/sessions/pearl/execute"
    first, _ = [(await anne.post(where, json={"code": "1"})).json() for _ in range(2)]
    for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
        answer = await anne.request(method, f"{BASE}/executions/{first['execution']}{path}")
        assert answer.status_code == 404, (method, path)


# A disk that is full, rates that are used up


async def test_where_nothing_can_be_written_down_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "named.key").write_text("A" * 43 + "=\n")
    log = {"folder": str(tmp_path / "log"), "heads": str(tmp_path / "heads")}
    log |= {"key_file": str(tmp_path / "named.key")}
    async with (
        Divingbell(pool=0, preload=[], audit="required", audit_log=log) as bell,
        served(bell) as site,
        site.client() as anne,
    ):
        where, mark = f"{BASE}/sessions/pearl/execute", {"code": "open('mark', 'a').write('x')"}
        assert (await anne.post(where, json=mark)).json()["value"] == 1
        with full(tmp_path):
            for headers in ({}, EVENTS):
                refused = await anne.post(where, json=mark, headers=headers)
                assert refused.status_code == 503, refused.text
                assert refused.json()["code"] == "not_recorded"
                assert int(refused.headers["retry-after"]) >= 1
                assert str(tmp_path) not in refused.text
        marks = await anne.get(f"{BASE}/sessions/pearl/files/mark")
        assert marks.text == "x"
        assert (await anne.post(where, json=mark)).json()["status"] == "ok"


SPIN = "import time\nwhile time.process_time() < 1.2: pass"


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "events"])
@pytest.mark.parametrize(
    ("rate", "code"), [("execution_rate_per_user", "1"), ("cpu_rate_per_user", SPIN)]
)
async def test_a_rate_that_is_used_up_says_when_to_come_again(
    rate: str, code: str, headers: dict[str, str]
) -> None:
    async with (
        Divingbell(pool=0, preload=[], policy={rate: "1/hour"}) as bell,
        served(bell) as site,
        site.client() as anne,
        site.client("bert-has-a-long-token") as bert,
    ):
        where = f"{BASE}/sessions/pearl/execute"
        assert (await anne.post(where, json={"code": code}, headers=headers)).status_code == 200
        for path in (where, f"{BASE}/execute"):
            refused = await anne.post(path, json={"code": "1"}, headers=headers)
            assert refused.status_code == 429 and refused.json()["code"] == "rate_exceeded"
            assert 1 < int(refused.headers["retry-after"]) <= 3600
            assert refused.headers["content-type"] == "application/problem+json"
        assert (await bert.post(where, json={"code": "1"}, headers=headers)).status_code == 200


async def test_the_audit_log_has_no_page_at_a_cursor_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    log = {"folder": str(tmp_path / "log"), "heads": str(tmp_path / "heads")}
    async with (
        Divingbell(pool=0, preload=[], audit="on", audit_log=log) as bell,
        served(bell) as site,
        site.client() as anne,
    ):
        assert (await anne.post(f"{BASE}/execute", json={"code": "1"})).status_code == 200

        async def is_written() -> bool:
            found = (await anne.get(f"{BASE}/audit")).json()["items"]
            return "execution.ended" in [each["kind"] for each in found]

        await until(is_written, "the log has it")
        for junk in ("x", "a|b", "a|b|c", "|||", "a" * 200, "a|b|" + "9" * 16):
            refused = await anne.get(f"{BASE}/audit", params={"cursor": junk})
            assert refused.status_code == 409 and refused.json()["code"] == "cursor_gone", junk
        for elsewhere in ("../../etc|passwd|1", "/etc|/etc/passwd|1", "0000|..|1"):
            nothing = await anne.get(f"{BASE}/audit", params={"cursor": elsewhere})
            assert nothing.json()["items"] == [], elsewhere
        first = (await anne.get(f"{BASE}/audit", params={"limit": "1"})).json()
        second = (
            await anne.get(f"{BASE}/audit", params={"limit": "1", "cursor": first["next"]})
        ).json()
        assert first["items"] != second["items"] and len(second["items"]) == 1
