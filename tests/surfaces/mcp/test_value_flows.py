"""Rules about kinds of values behind an MCP client: direct calls and code together."""

import json
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.border.vault.tokens import TOKEN
from tests.gateway.galley import ENTRY
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.test_http import ANNE, BERT, connected, run, served

MAIL = "zelda.s@harbour.example.org"


@pytest.fixture(scope="module")
async def url(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    entry = {**ENTRY, "direct": ["*"]}
    flow = {"from": "crm.*", "to": "slack.*", "action": "deny", "kinds": ["personal"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(
            pool=0,
            preload=[],
            search="words",
            mode="hybrid",
            servers={"crm": entry, "slack": entry, "time": entry},
            policy={"flow": [flow]},
            privacy="personal",
            privacy_rules={"border": {"crm.*.pin": "sandbox", "crm.*": "sandbox"}},
        ) as bell:
            for name in ("crm", "slack"):
                await bell.gateway.fleet.wait_until_ready(name)
            async with served(bell) as url:
                yield url


async def test_a_model_and_its_code_have_the_same_token_and_neither_posts_it(
    url: str, era: Era
) -> None:
    async with connected(url, ANNE, era) as client:

        async def direct(tool: str, text: str) -> str:
            return text_of(await client.call_tool(tool, {"text": text}))

        said = await direct("crm__echo", json.dumps({"email": MAIL, "pin": 42, "n": 7}))
        assert MAIL not in said and "42," not in said and '"n": 7' in said
        mail, pin = dict.fromkeys(found[0] for found in TOKEN.finditer(said))
        assert mail.startswith("[EMAIL_") and pin.startswith("[VALUE_")
        for token in (mail, pin):
            told = f"slack.echo is denied by policy: {token} came from crm.echo"
            assert told in await direct("slack__echo", f"to {token}")
            assert told in await run(client, f"servers.slack.echo({token!r})")
        assert mail in await direct("crm__echo", f"<{mail}>")
        assert "fine" in await direct("slack__echo", "fine")
        assert mail in await run(client, f"servers.crm.echo({MAIL!r})")
        assert "True" in await run(client, f"servers.crm.echo({MAIL!r}) == {mail!r}")
        # Another tool sends it back, in a session that has not got it from its source.
        told = await run(
            client, f"servers.slack.echo(servers.time.echo({mail!r}))", session_id=f"other-{era}"
        )
        assert f"{mail} came from crm.echo" in told


async def test_a_second_connection_reads_no_name_in_a_session_that_the_first_has_filled(
    url: str,
) -> None:
    person = json.dumps({"last_name": "Sayrefitz"})
    code = f"said = servers.time.echo({person!r})\nopen('people.txt', 'w').write(said)"
    async with connected(url, BERT, "legacy") as first, connected(url, BERT, "legacy") as second:
        await run(first, code, session_id="shared")
        listed = [each.uri for each in (await second.list_resources()).resources]
        [file] = [uri for uri in listed if "people.txt" in str(uri)]
        read = (await second.read_resource(file)).model_dump_json()
        assert "Sayrefitz" not in read and "[NAME_" in read
