"""`divingbell token`: made, listed and revoked by command, and in force where a server runs."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import USUAL, Tokens
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.token_store import TokenStore
from tests.surfaces.cli.command import Bell, runner
from tests.surfaces.http.serving import served


@pytest.fixture
def bell_command(tmp_path: Path) -> Bell:
    run = runner(tmp_path)
    return lambda *arguments, **more: run(*arguments, XDG_DATA_HOME=str(tmp_path), **more)


def _created(bell: Bell, *arguments: str) -> tuple[str, str]:
    """The token, and its id."""
    made = bell("token", "create", *arguments)
    assert made.returncode == exit_status.OK, made.stderr
    token = made.stdout.strip()
    assert token.startswith("db_") and token not in made.stderr
    return token, re.findall(r"\b([0-9a-f]{8})\b", made.stderr)[0]


def test_tokens_are_listed_but_for_what_they_are(bell_command: Bell) -> None:
    assert "There are none" in bell_command("token", "list").stderr
    first, number = _created(bell_command, "anne", "--note", "laptop\x1b[31m")
    second, _ = _created(bell_command, "prometheus", "--scope", "metrics", "--days", "2")
    listed = bell_command("token", "list")
    one, other = listed.stdout.splitlines()
    assert one.startswith(f"{number}  anne  run,read,approve  does not expire  laptop")
    assert "prometheus  metrics  expires 20" in other
    as_json = bell_command("token", "list", "--json")
    for each in (first, second):
        assert each not in listed.stdout + as_json.stdout
    told = json.loads(as_json.stdout)
    assert [(each["user"], each["scopes"]) for each in told] == [
        ("anne", ["run", "read", "approve"]),
        ("prometheus", ["metrics"]),
    ]
    assert "hash" not in as_json.stdout and "\x1b" not in listed.stdout + as_json.stdout


async def test_what_a_command_makes_and_revokes_holds_in_a_server_that_runs(
    bell: Divingbell, bell_command: Bell, tmp_path: Path
) -> None:
    store = TokenStore(tmp_path / "divingbell" / "tokens.json")
    async with served(bell, Tokens({}, USUAL, store)) as site:
        token, number = _created(bell_command, "anne")
        async with site.client(token) as anne, httpx2.AsyncClient():
            told = await anne.get("/api/v1/me")
            assert told.status_code == 200, (told.text, list(tmp_path.rglob("*")))
            none = bell_command("token", "revoke", "00000000")
            assert none.returncode == exit_status.USAGE and "there is no token" in none.stderr
            gone = bell_command("token", "revoke", number)
            assert gone.returncode == exit_status.OK and "anne" in gone.stderr
            assert (await anne.get("/api/v1/me")).status_code == 401
    assert bell_command("token", "list").stdout == ""
