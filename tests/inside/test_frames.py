"""The frame format: whole frames pass, whatever the cut; everything else is refused."""

import json
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell_inside import frames

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
headers = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), plain, max_size=5)


@given(st.lists(st.tuples(headers, st.binary(max_size=200)), max_size=5), st.integers(1, 50))
def test_frames_survive_any_cut(sent: list[tuple[dict[str, object], bytes]], size: int) -> None:
    data = b"".join(frames.pack(header, body) for header, body in sent)
    decoder = frames.Decoder()
    received = []
    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])
        while (frame := decoder.next_frame()) is not None:
            received.append(frame)
    assert received == sent


@given(st.binary(max_size=500))
def test_garbage_is_refused_or_waited_for_and_never_more(data: bytes) -> None:
    try:
        decoder = frames.Decoder()
        decoder.feed(data)
        while (frame := decoder.next_frame()) is not None:
            assert isinstance(frame[0], dict) and isinstance(frame[1], bytes)
    except frames.FrameError:
        pass


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"5",
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_header_must_be_one_strict_object(text: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.parse(text)


@pytest.mark.parametrize(("head", "body"), [(1, 0), (2**32 - 1, 0), (2, 2**32 - 1), (0, 0)])
def test_lengths_are_capped_before_anything_is_stored(head: int, body: int) -> None:
    decoder = frames.Decoder()
    decoder.feed(struct.pack("!II", head, body))
    with pytest.raises(frames.FrameError):
        decoder.next_frame()


@pytest.mark.parametrize("header", [{"a": float("nan")}, {"a": object()}, {"a": "x" * (1 << 21)}])
def test_what_cannot_be_sent_is_refused_here(header: dict[str, object]) -> None:
    with pytest.raises(frames.FrameError):
        frames.pack(header)


def test_a_blocking_reader_gets_whole_frames_and_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(frames.pack({"a": 1}, b"body") + frames.pack({"b": 2}))
        assert frames.receive(ours) == ({"a": 1}, b"body")
        assert frames.receive(ours) == ({"b": 2}, b"")
        theirs.sendall(struct.pack("!II", 100, 0) + json.dumps({"half": 1}).encode())
        theirs.close()
        assert frames.receive(ours) is None


@pytest.mark.parametrize("inner", ["[]", "{}", "1", "[1]", '{"a":[]}'])
@pytest.mark.parametrize("outer", [("[", "]"), ('{"a":', "}")])
def test_a_value_may_be_nested_so_deeply_and_no_deeper(inner: str, outer: tuple[str, str]) -> None:
    begin, end = outer
    levels = inner.count("[1") + inner.count('{"')  # how much deeper it is than an empty one
    room = frames.MAX_DEPTH - 2 - levels
    wide = "[]," * 100  # where there are few containers nobody looks
    for depth, is_fine in ((room, True), (room + 1, False)):
        text = f'{{"x":{begin * depth}{inner}{end * depth},"y":[{wide}1]}}'.encode()
        if is_fine:
            assert "x" in frames.parse(text)
        else:
            with pytest.raises(frames.FrameError, match="too deeply"):
                frames.parse(text)
