"""The seal, and where its key comes from."""

import base64
import os
from pathlib import Path

import pytest

from divingbell.border.vault import seal
from divingbell.border.vault.seal import NotOpened, Seal, load_key
from divingbell.errors import ConfigError

KEY = bytes(range(32))


def test_what_is_sealed_opens_in_its_place_with_its_key_and_nowhere_else() -> None:
    made = Seal(KEY)
    closed = made.close(["EMAIL", "ann@x.org"], "here")
    assert b"ann" not in closed
    assert made.open(closed, "here") == ["EMAIL", "ann@x.org"]
    assert made.close(1, "here") != made.close(1, "here")
    for wrong in (closed[:-1] + bytes([closed[-1] ^ 1]), b"", b"short"):
        with pytest.raises(NotOpened):
            made.open(wrong, "here")
    with pytest.raises(NotOpened):
        made.open(closed, "elsewhere")
    with pytest.raises(NotOpened):
        Seal(bytes(32)).open(closed, "here")


def test_names_are_the_same_each_time_and_tell_nothing() -> None:
    made = Seal(KEY)
    assert made.name_of("ann", "1") == made.name_of("ann", "1")
    others = [
        made.name_of("ann", "2"),
        made.name_of("an", "n1"),
        Seal(bytes(32)).name_of("ann", "1"),
    ]
    assert len({made.name_of("ann", "1"), *others}) == 4
    assert "ann" not in made.name_of("ann", "1")
    made.name_of("\ud800", "")


def test_the_key_comes_from_the_environment_a_file_or_is_made_once(tmp_path: Path) -> None:
    text = base64.b64encode(KEY).decode()
    told: list[str] = []
    assert load_key(None, tmp_path, {seal.VARIABLE: text}, told.append) == KEY
    named = tmp_path / "named"
    named.write_text(f"{text}\n")
    named.chmod(0o600)
    assert load_key(named, tmp_path, {}, told.append) == KEY
    assert told == []
    made = load_key(None, tmp_path / "data", {}, told.append)
    assert len(told) == 1 and str(tmp_path / "data" / seal.FILE_NAME) in told[0]
    assert load_key(None, tmp_path / "data", {}, told.append) == made
    assert len(told) == 1 and made != KEY
    assert os.stat(tmp_path / "data" / seal.FILE_NAME).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["short", "!" * 44, base64.b64encode(bytes(31)).decode()])
def test_a_key_that_is_none_is_refused_with_the_way_to_make_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"os\.urandom"):
        load_key(None, tmp_path, {seal.VARIABLE: text})
    path = tmp_path / "key"
    path.write_text(text)
    with pytest.raises(ConfigError, match="base64"):
        load_key(path, tmp_path, {})


def test_a_key_file_that_is_missing_or_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_key(tmp_path / "nothing", tmp_path, {})
    (tmp_path / seal.FILE_NAME).symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="can't be read"):
        load_key(None, tmp_path, {})
