"""Signed heads: nobody makes one without the key."""

import json
from pathlib import Path

import pytest

from divingbell.audit import heads
from divingbell.audit.chain import Link
from divingbell.audit.signing import Head, Key, NotSigned, head_in

KEY = Key(bytes(range(32)))
HEAD = Head("chain", Link(7, "f" * 64), "2026-11-17T18:00:00.000000Z")


def test_a_head_is_known_again_by_the_public_key() -> None:
    assert head_in(KEY.signed(HEAD), KEY.public) == HEAD


@pytest.mark.parametrize(
    ("name", "value"),
    [("number", 6), ("hash", "e" * 64), ("chain", "other"), ("at", "2027"), ("signature", "AA==")],
)
def test_a_head_with_anything_changed_is_not_signed(name: str, value: object) -> None:
    said = json.loads(KEY.signed(HEAD)) | {name: value}
    with pytest.raises(NotSigned):
        head_in(json.dumps(said).encode(), KEY.public)


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"number": 1e999}'])
def test_what_is_no_head_is_not_signed(line: bytes) -> None:
    with pytest.raises(NotSigned):
        head_in(line, KEY.public)


def test_the_furthest_head_counts_and_lines_of_others_do_not(tmp_path: Path) -> None:
    written = heads.Heads(tmp_path, "chain", KEY)
    written.write(Link(1, "a" * 64))
    written.write(Link(2, "b" * 64))
    written.close()
    other = Key(bytes(32)).signed(Head("chain", Link(9, "c" * 64), "2026"))
    with open(tmp_path / "chain.heads", "ab") as file:
        file.write(b"half a li\n" + other)
    found, forged = heads.newest(tmp_path, "chain", KEY.public)
    assert found is not None and found.link == Link(2, "b" * 64) and forged == 1


def test_a_head_of_another_chain_proves_nothing(tmp_path: Path) -> None:
    written = heads.Heads(tmp_path, "chain", KEY)
    written.write(Link(1, "a" * 64))
    written.close()
    (tmp_path / "chain.heads").rename(tmp_path / "other.heads")
    assert heads.newest(tmp_path, "other", KEY.public) == (None, 1)
