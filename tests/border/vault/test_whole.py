"""A whole Divingbell with its vault: a Redis that goes away, and a process that is killed."""

import asyncio
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from divingbell import ConfigError, Divingbell, UnknownToken
from divingbell.border.vault import vault as vault_module
from divingbell.border.vault.sqlite import FILE_NAME
from tests.border.vault.conftest import Server
from tests.waiting import PATIENCE, until

ANN = "ann@example.org"


async def test_where_redis_goes_away_values_stay_hidden_and_known_tokens_go_on(
    redis_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(vault_module, "RETRY_LEAST", 0.05)
    sent: list[str] = []

    def mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    options: dict[str, Any] = {"pool": 0, "preload": [], "tools": [mail], "privacy": "personal"}
    options["vault"] = {"store": redis_server.url}
    async with Divingbell(**options) as bell:
        async with bell.session("open") as session:
            token = (await session.run(f"print({ANN!r})")).text.strip()
            assert token.startswith("[EMAIL_")
            redis_server.stop()
            shown = (await session.run(f"print({ANN!r}, 'bob@example.org')")).text.split()
            assert shown[0] == token and shown[1].startswith("[EMAIL_")
            for word, value in zip(shown, (ANN, "bob@example.org"), strict=True):
                answer = await session.run(f"servers.host.mail({word!r})")
                assert (sent[-1], answer.value) == (value, f"sent to {word}")
            with pytest.raises(UnknownToken, match="vault does not answer"):
                await session.run("print('[EMAIL_482715]')")
        async with bell.session("later") as session:  # one that nothing was read of
            shown = (await session.run(f"print({ANN!r})")).text.split()
            assert shown[0].startswith("[EMAIL_") and ANN not in str(shown)
        assert ANN not in caplog.text and "vault" in caplog.text
        with pytest.raises(ConfigError, match="can't be used"):
            async with Divingbell(**options):
                pass
        redis_server.start()
        vaults: Any = bell.border
        await until(lambda: not vaults._vaults._waiting, "what waited is written")
    async with Divingbell(**options) as bell, bell.session("later") as session:
        assert (await session.run(f"print({ANN!r})")).text.split() == shown


CRASHING = f"""
import asyncio
from divingbell import Divingbell

async def main():
    async with Divingbell(pool=0, preload=[], privacy="personal", vault={{"keep": 60}}) as bell:
        async with bell.session("open", user="ann") as session:
            print((await session.run("print({ANN!r})")).text.strip(), flush=True)
            await asyncio.sleep(3600)

asyncio.run(main())
"""


async def test_tokens_of_a_process_that_was_killed_are_gone_at_the_next_start_once_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    file = tmp_path / "divingbell" / FILE_NAME

    def rows() -> int:
        with sqlite3.connect(file) as database:
            [(count,)] = database.execute("SELECT count(*) FROM kept")
        database.close()
        return int(count)

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CRASHING, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            token = (await process.stdout.readline()).decode().strip()
        assert token.startswith("[EMAIL_"), token
        await until(lambda: rows() == 1, "it is kept")
    finally:
        process.kill()
        ended = await process.wait()
    assert ended == -signal.SIGKILL
    options: dict[str, Any] = {"privacy": "personal", "vault": {"keep": 60}}
    async with (
        Divingbell(pool=0, preload=[], **options) as bell,
        bell.session("open", user="ann") as session,  # it goes on, within that time
    ):
        assert await session.reveal(token) == ANN
    with sqlite3.connect(file) as database:
        database.execute("UPDATE conversations SET used = used - 61")
    database.close()
    async with Divingbell(pool=0, preload=[], **options) as bell:
        assert rows() == 0
        async with bell.session("open", user="ann") as session:
            with pytest.raises(UnknownToken, match="not known in this conversation"):
                await session.run(f"print({token!r})")
