"""Messages as frames, and frames that are no messages."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.surfaces.http.jupyter.framing import (
    MAX_PARTS,
    V1,
    Framing,
    JsonFraming,
    V1Framing,
    framing_of,
)
from divingbell.surfaces.http.jupyter.messages import BadMessage, Header, message
from tests.surfaces.http.jupyter.talking import header, packed, unpacked

PARENT = Header("the-parent", "execute_request", "a-session")
HEADER = json.dumps(header("execute_request", "n1")).encode()


def test_the_newer_form_is_taken_where_a_client_asks_for_it() -> None:
    assert isinstance(framing_of(["other", V1])[0], V1Framing)
    assert framing_of(["other", V1])[1] == V1
    assert isinstance(framing_of(["other"])[0], JsonFraming)
    assert framing_of([])[1] is None


def test_a_message_is_written_in_both_forms() -> None:
    told = message("stream", "iopub", {"name": "stdout", "text": 'a "b" ü\n'}, PARENT)
    old, new = JsonFraming().write(told), V1Framing().write(told)
    assert isinstance(old, str) and isinstance(new, bytes)
    plain = json.loads(old)
    assert plain["msg_id"] == plain["header"]["msg_id"]
    for read in (plain, unpacked(new)):
        assert read["channel"] == "iopub" and read["msg_type"] == "stream"
        assert read["content"] == {"name": "stdout", "text": 'a "b" ü\n'}
        assert read["parent_header"]["msg_id"] == "the-parent"
        assert read["header"]["version"] == "5.4"


def test_a_request_is_read_in_both_forms() -> None:
    content = b'{"code": "1"}'
    old = {"header": json.loads(HEADER), "content": {"code": "1"}, "channel": "shell"}
    with_buffer = json.dumps(old).encode()
    offsets = struct.pack(">III", 2, 12, 12 + len(with_buffer))
    frames: list[tuple[Framing, str | bytes]] = [
        (JsonFraming(), json.dumps(old)),
        (JsonFraming(), offsets + with_buffer + b"a buffer"),
        (V1Framing(), packed("shell", HEADER, b"{}", b"{}", content)),
        (V1Framing(), packed("shell", HEADER, b"{}", b"{}", content, b"a buffer")),
    ]
    for framing, frame in frames:
        request = framing.read(frame)
        assert (request.kind, request.channel) == ("execute_request", "shell")
        assert json.loads(bytes(request.content)) == {"code": "1"}


def test_a_number_for_a_date_is_taken_as_some_clients_send_it() -> None:
    head = json.loads(HEADER) | {"date": 1763373600.5, "username": None, "more": [1]}
    request = JsonFraming().read(json.dumps({"header": head, "parent_header": {}}))
    assert request.header.date == 1763373600.5 and request.channel is None


BAD_JSON = [
    "",
    "nothing",
    "[]",
    "{}",
    '{"header": {}}',
    '{"header": {"msg_id": 1, "msg_type": "x"}}',
    '{"header": {"msg_id": "a", "msg_type": "%s"}}' % ("x" * 257),
    '{"header": {"msg_id": "a", "msg_type": "x"}, "channel": "other"}',
    '{"header": {"msg_id": "a", "msg_type": "x"}, "content": '
    + "[" * 100_000
    + "]" * 100_000
    + "}",
    '{"header": {"msg_id": "a", "msg_type": "x"}, "parent_header": ' + '{"a":' * 100_000,
    b"",
    b"\0\0\0",
    struct.pack(">I", 0),
    struct.pack(">I", 0xFFFFFFFF) + bytes(100),
    struct.pack(">II", 1, 4) + b"{}",
    struct.pack(">III", 2, 12, 9) + b"{}",
    struct.pack(">III", 2, 12, 900) + b"{}",
]
BAD_V1 = [
    "text",
    b"",
    b"\0" * 7,
    struct.pack("<Q", 0),
    struct.pack("<Q", 1 << 63) + bytes(100),
    struct.pack("<Q", MAX_PARTS + 1) + bytes(8 * (MAX_PARTS + 1)),
    struct.pack("<7Q", 6, 56, 56, 56, 56, 56, 1 << 62),
    struct.pack("<7Q", 6, 0, 0, 0, 0, 0, 0),
    packed("shell", HEADER, b"{}"),
    packed("shell", b"[]", b"{}", b"{}", b"{}"),
    packed("shell", b"\xff\xfe", b"{}", b"{}", b"{}"),
    packed("nowhere", HEADER, b"{}", b"{}", b"{}"),
    packed("shell", b"[" * 100_000, b"{}", b"{}", b"{}"),
]


@pytest.mark.parametrize("frame", BAD_JSON, ids=lambda frame: repr(frame[:40]))
def test_what_is_no_message_is_refused(frame: str | bytes) -> None:
    with pytest.raises(BadMessage):
        JsonFraming().read(frame)


@pytest.mark.parametrize("frame", BAD_V1, ids=lambda frame: repr(frame[:40]))
def test_what_is_no_frame_of_the_newer_form_is_refused(frame: str | bytes) -> None:
    with pytest.raises(BadMessage):
        V1Framing().read(frame)


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300)))
def test_no_bytes_make_reading_fail_in_another_way(frame: str | bytes) -> None:
    for framing in (JsonFraming(), V1Framing()):
        with pytest.raises(BadMessage):
            framing.read(frame)


@given(st.lists(st.integers(0, 400), max_size=8), st.binary(max_size=200))
def test_no_offsets_make_reading_fail_in_another_way(offsets: list[int], rest: bytes) -> None:
    for form, framing in (("<%dQ", V1Framing()), (">%dI", JsonFraming())):
        head = struct.pack(form % (len(offsets) + 1), len(offsets), *offsets)
        with pytest.raises(BadMessage):
            framing.read(head + rest)
