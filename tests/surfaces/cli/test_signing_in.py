"""`divingbell login`: a sign-in with a browser, and what the audit log has of it."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from divingbell.audit import reading
from divingbell.host.login import login_name
from divingbell.settings.servers import Server
from tests.gateway.sign_in.test_oauth import guarded
from tests.gateway.upstreams import free_port
from tests.small_disk import AS_ROOT, filled, small_disk

from .command import runner

BROWSER = f"""\
#!{sys.executable}
import sys, urllib.request
open("opened", "a").write("x")
urllib.request.urlopen(sys.argv[1])
"""
LogIn = Callable[[Server], subprocess.CompletedProcess[str]]


@pytest.fixture
def log_in(tmp_path: Path) -> LogIn:
    """Runs the command with a browser that follows redirects, and makes the file `opened`."""
    (tmp_path / "browser").write_text(BROWSER)
    (tmp_path / "browser").chmod(0o700)

    def run(server: Server) -> subprocess.CompletedProcess[str]:
        (tmp_path / "divingbell.toml").write_text(
            f'audit = "on"\n[servers.guarded]\nurl = "{server.url}"\ntransport = "http"\n'
        )
        more = {"XDG_DATA_HOME": str(tmp_path / "data"), "BROWSER": str(tmp_path / "browser")}
        return runner(tmp_path)("login", "guarded", "--config", "divingbell.toml", **more)

    return run


def _recorded(folder: Path) -> list[dict[str, Any]]:
    return [*reading.records(folder / "data/divingbell/audit")]


async def test_a_sign_in_is_in_the_audit_log(tmp_path: Path, log_in: LogIn) -> None:
    async with guarded() as server:
        done = await asyncio.to_thread(log_in, server)
        assert done.returncode == 0 and "signed in at guarded" in done.stdout, done.stderr
        found = _recorded(tmp_path)
        assert [each["kind"] for each in found] == [
            "log.begun", "log.checked", "signed_in", "log.closed",
        ]  # fmt: skip
        said = {name: found[2][name] for name in ("user", "client", "server", "outcome")}
        assert said == {
            "user": login_name(), "client": "command", "server": "guarded", "outcome": "ok",
        }  # fmt: skip
        # Nobody is asked a second time, and nothing is recorded that was not done.
        assert "asks for no sign-in" in (await asyncio.to_thread(log_in, server)).stdout
        assert (tmp_path / "opened").read_text() == "x"
        assert [each["kind"] for each in _recorded(tmp_path)].count("signed_in") == 1


async def test_a_sign_in_that_fails_is_in_the_audit_log_too(tmp_path: Path, log_in: LogIn) -> None:
    away = Server("guarded", url=f"http://127.0.0.1:{free_port()}/mcp", transport="http")
    assert (await asyncio.to_thread(log_in, away)).returncode != 0
    [failed] = [each for each in _recorded(tmp_path) if each["kind"] == "sign_in.failed"]
    assert (failed["user"], failed["server"], failed["outcome"]) == (
        login_name(), "guarded", "failed",
    )  # fmt: skip
    assert "signing in at guarded failed" in failed["reason"]


@AS_ROOT
async def test_nobody_is_asked_to_sign_in_while_the_log_can_t_be_written(
    tmp_path: Path, log_in: LogIn
) -> None:
    async with guarded() as server:
        with small_disk(tmp_path / "data/divingbell/audit", 64 << 10) as disk, filled(disk):
            done = await asyncio.to_thread(log_in, server)
        assert (done.returncode, done.stdout) == (3, "") and "No space left" in done.stderr
        assert not (tmp_path / "opened").exists()
        assert not (tmp_path / "data/divingbell/oauth").exists()
