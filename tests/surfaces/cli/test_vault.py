"""`divingbell vault`: what it says, and tokens that are put back for a person."""

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from divingbell.border.vault.opening import open_vaults
from divingbell.border.vault.vault import Vaults
from divingbell.principal import Principal
from divingbell.settings.vault import VaultSettings
from divingbell.surfaces.cli.vault import Text

from .command import COMMAND, PATIENCE, Bell, environment, runner
from .test_shell import at_a_terminal

FIRST, SECOND = Principal("ann", "first"), Principal("bob", "second")
VALUE = "ann@example.org"


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    made = runner(tmp_path)

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return made(*arguments, XDG_DATA_HOME=str(tmp_path), **more)

    return run


def _bytes_of(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        env=environment(XDG_DATA_HOME=str(folder)),
        cwd=folder,
        timeout=PATIENCE,
    )


async def _opened(tmp_path: Path, keep: float = 86_400.0) -> Vaults:
    chosen = VaultSettings(keep=keep)
    vaults = open_vaults(chosen, tmp_path / "divingbell", {}, lambda _: None)
    await vaults.start()
    return vaults


async def _filled(tmp_path: Path) -> list[str]:
    """The tokens of two e-mail addresses and a key, of two conversations."""
    vaults = await _opened(tmp_path)
    given = [
        vaults.of(FIRST).token_of(VALUE, "EMAIL"),
        vaults.of(FIRST).token_of("key \x1b[2J'quoted\"", "API_KEY"),
        vaults.of(SECOND).token_of("bob@example.org", "EMAIL"),
    ]
    await vaults.close()
    return given


async def test_it_says_how_much_there_is_and_nothing_of_it(tmp_path: Path, bell: Bell) -> None:
    await _filled(tmp_path)
    vaults = await _opened(tmp_path)  # a server that runs
    done = bell("vault")
    assert done.stdout.splitlines() == [
        f"3 values of 2 conversations, sealed, in {tmp_path}/divingbell/vault.db",
        "       2  EMAIL",
        "       1  API_KEY",
        "A conversation is forgotten 1 day after its last use.",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(bell("vault", "--json").stdout) == {
        "store": f"{tmp_path}/divingbell/vault.db",
        "keep": 86_400,
        "conversations": 2,
        "values": {"API_KEY": 1, "EMAIL": 2},
    }
    await vaults.close()


def test_to_look_makes_nothing(tmp_path: Path, bell: Bell) -> None:
    assert bell("vault").stdout.startswith("0 values of 0 conversations")
    done = bell("vault", "reveal", "--to-program", stdin="[EMAIL_482715]")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no vault" in done.stderr
    assert not list(tmp_path.iterdir())


async def test_a_text_comes_back_with_its_values_to_the_byte(tmp_path: Path, bell: Bell) -> None:
    email, key, _ = await _filled(tmp_path)
    text = f"To: {email},\r\n{key}{email} and [EMAIL_1] ü"
    file = tmp_path / "report.txt"
    file.write_bytes(text.encode() + b"\xff\x00")
    done = _bytes_of(tmp_path, "vault", "reveal", "--to-program", "-v", "report.txt")
    expected = f"To: {VALUE},\r\nkey \x1b[2J'quoted\"{VALUE} and [EMAIL_1] ü".encode()
    assert (done.returncode, done.stdout) == (0, expected + b"\xff\x00")
    told = done.stderr.decode()
    assert "· 2 tokens replaced, 0 not known\n" in told
    assert "2 values of nobody: revealed to a command" in told
    assert VALUE not in told


async def test_tokens_that_are_not_known_stay_and_make_it_fail(tmp_path: Path, bell: Bell) -> None:
    email, *_ = await _filled(tmp_path)
    done = bell("vault", "reveal", "--to-program", stdin=f"{email} [CARD_123456]")
    assert (done.returncode, done.stdout) == (1, f"{VALUE} [CARD_123456]")
    assert "· [CARD_123456] is not known" in done.stderr


async def test_nothing_is_forgotten_by_settings_of_a_shorter_memory(
    tmp_path: Path, bell: Bell
) -> None:
    email, *_ = await _filled(tmp_path)
    (tmp_path / "short.toml").write_text("[vault]\nkeep = 60")
    with sqlite3.connect(tmp_path / "divingbell/vault.db") as database:
        database.execute("UPDATE conversations SET used = used - 3600")
    database.close()
    for _ in range(2):
        done = bell("vault", "reveal", "--config", "short.toml", "--to-program", stdin=email)
        assert (done.returncode, done.stdout) == (0, VALUE)
        assert bell("vault", "--config", "short.toml").stdout.startswith("3 values")


async def test_a_token_of_two_conversations_is_that_of_the_one_that_knows_all(
    tmp_path: Path, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    email, key, _ = await _filled(tmp_path)
    vaults = await _opened(tmp_path)
    drawn = lambda *_: email  # noqa: E731
    monkeypatch.setattr("divingbell.border.vault.tokens.draw", drawn)
    other = vaults.of(Principal("eve", "third"))
    other.token_of("eve@example.org", "EMAIL")
    await vaults.close()
    done = bell("vault", "reveal", "--to-program", stdin=f"{email} {key}")
    assert done.stdout.startswith(VALUE)
    refused = bell("vault", "reveal", "--to-program", stdin=email)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{email} stands for one value in one conversation" in refused.stderr
    assert VALUE not in refused.stderr
    short = other.name[:8]
    assert short in refused.stderr
    chosen = ("vault", "reveal", "--to-program", "--conversation")
    assert bell(*chosen, short, stdin=email).stdout == "eve@example.org"
    done = bell(*chosen, short, stdin=f"{email} {key}")
    assert (done.returncode, done.stdout) == (1, f"eve@example.org {key}")
    done = bell(*chosen, "zzz", stdin=email)
    assert done.returncode == 2 and short in done.stderr


async def test_another_key_is_said_to_be_another(tmp_path: Path, bell: Bell) -> None:
    email, *_ = await _filled(tmp_path)
    key = "A" * 43 + "="
    done = bell("vault", "reveal", "--to-program", stdin=email, DIVINGBELL_VAULT_KEY=key)
    assert (done.returncode, done.stdout) == (2, "")
    assert "made with another key" in done.stderr


async def test_where_there_is_no_terminal_it_refuses_unless_it_is_meant(
    tmp_path: Path, bell: Bell
) -> None:
    email, *_ = await _filled(tmp_path)
    done = bell("vault", "reveal", stdin=email)
    assert (done.returncode, done.stdout) == (2, "")
    assert "add --to-program if this is meant" in done.stderr


async def test_at_a_terminal_values_do_not_control_it(tmp_path: Path) -> None:
    email, key, _ = await _filled(tmp_path)
    (tmp_path / "text").write_text(f"{email} {key}\n")
    with at_a_terminal(tmp_path, "vault", "reveal", "text", XDG_DATA_HOME=str(tmp_path)) as screen:
        screen.expect(f"{VALUE} key 'quoted\"")
        screen.expect("2 tokens replaced")
        assert screen.leave() == 0


def test_what_only_looks_like_a_token_is_left() -> None:
    text = Text(b"[EMAIL_482715] [email_482715] [EMAIL_48271] [EMAIL_482715] [X[CARD_123456]]")
    assert text.tokens == ["[EMAIL_482715]", "[CARD_123456]"]
    assert text.with_values({"[CARD_123456]": "4"}).endswith(b"[X4]")
