"""What a model is told is so: each piece of code in the texts is run, as it is written."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from divingbell import Divingbell
from divingbell.settings.servers import Server
from divingbell.surfaces.mcp.server import Surface
from tests import real_servers
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.serving import fixture
from tests.waiting import until

SHELVES = 210
CODE = re.compile(r"`([^`]+)`")
BROKEN = {"command": "/opt/secret-folder/inner/server.py", "args": []}


def entry(shelves: int = SHELVES) -> dict[str, Any]:
    command, arguments = real_servers.fixture("plenty")
    return {"command": command, "args": [*arguments, str(shelves)]}


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    # `b-roken` comes first in the list, and is told of like any other.
    servers = {"b-roken": BROKEN, "plenty": entry(), "shop": fixture("workshop")}
    async with Divingbell(pool=1, copy_after=0.0, servers=servers, search="words") as bell:
        await bell.gateway.fleet.wait_for_tools("plenty")
        await bell.gateway.fleet.wait_for_tools("shop")
        yield bell


@pytest.fixture
async def surface(bell: Divingbell) -> AsyncIterator[Surface]:
    surface = Surface(bell)
    yield surface
    await surface.close()


@pytest.fixture
async def client(surface: Surface, era: Era) -> AsyncIterator[Client]:
    async with Client(surface.server, mode=era, cache=None) as client:
        yield client


async def run(client: Client, code: str) -> str:
    result = await client.call_tool("execute_python", {"code": code})
    assert not result.is_error, (code, text_of(result))
    return text_of(result)


async def search(client: Client, **arguments: Any) -> list[str]:
    """The lines of an answer, without that about the server that is down."""
    found = text_of(await client.call_tool("search_tools", arguments)).splitlines()
    return [line for line in found if "not available" not in line]


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in found for text in texts_in(item)]


async def told(client: Client) -> list[str]:
    """All words that a client gets before it has done anything."""
    listed = (await client.list_tools()).tools
    described = [tool.model_dump(mode="json", exclude_none=True) for tool in listed]
    return [client.instructions or "", *texts_in(described)]


def code_in(texts: list[str], server: str = "plenty", tool: str = "double") -> list[str]:
    """The code in backquotes; the words that are not meant as they stand are SERVER and TOOL."""
    spans = [span for text in texts for span in CODE.findall(text)]
    return [re.sub(r"\bTOOL\b", tool, re.sub(r"\bSERVER\b", server, span)) for span in spans]


async def test_all_code_in_instructions_and_descriptions_runs_as_written(era: Era) -> None:
    async with Divingbell(pool=0, servers={"plenty": entry(3)}) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            spans = code_in(await told(client))
            assert len(spans) >= 5 and "!cat /servers/plenty/README.md" in spans
            await run(client, "from servers.plenty import double")
            shown = {span: await run(client, span) for span in spans}
        await surface.close()
    assert "plenty" in shown["!ls /servers"]
    assert "double: Twice a number." in shown["!cat /servers/plenty/README.md"]
    assert "double" in shown["dir(servers.plenty)"]
    assert any("[2, 4]" in text for text in shown.values())  # of what is gathered


async def test_all_paths_in_instructions_and_descriptions_are_there(client: Client) -> None:
    texts = [text.replace("SERVER", "plenty") for text in await told(client)]
    paths = {path for text in texts for path in re.findall(r"(?<!\w)/[\w./-]+", text)}
    assert {"/workspace", "/servers"} <= paths
    await run(client, f"import os\nassert all(map(os.path.exists, {sorted(paths)!r}))")


async def test_all_code_in_the_files_about_servers_runs_as_written(client: Client) -> None:
    for path in ("/servers/README.md", "/servers/plenty/README.md", "/servers/shop/README.md"):
        text = await run(client, f"print(open({path!r}).read())")
        spans = code_in([text])
        assert spans
        for span in spans:
            await run(client, span)


async def test_every_package_that_is_named_can_be_imported(client: Client) -> None:
    [packages] = re.findall(r"Packages: (.*?)\. ", client.instructions or "")
    assert packages.split(", ")[:2] == ["pandas", "numpy"]
    await run(client, f"import {packages}")


async def test_every_server_that_is_named_is_there_and_says_how_it_is(client: Client) -> None:
    [line] = re.findall(r"Servers: (.*)", client.instructions or "")
    names = line.split(", ")
    assert names == ["b_roken", "plenty", "shop"]
    assert "['b_roken', 'plenty', 'shop']" in await run(client, "dir(servers)")
    for name in names:
        assert name in await run(client, f"!cat /servers/{name}/README.md")
    result = await client.call_tool("execute_python", {"code": "import servers.b_roken"})
    assert result.is_error and "the server b-roken is not available" in text_of(result)


async def test_a_server_that_has_not_answered_yet_can_be_looked_at(tmp_path: Path) -> None:
    """What is said of it runs, and waits for it where that is said."""
    gate = tmp_path / "gate"
    _, [path] = real_servers.fixture("plenty")
    code = (
        "import pathlib, runpy, sys, time\n"
        f"while not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\n"
        f"sys.argv = ['plenty', '1']\nrunpy.run_path({path!r}, run_name='__main__')"
    )
    slow = {"command": sys.executable, "args": ["-c", code]}
    async with Divingbell(pool=0, servers={"slow": slow}) as bell, bell.session() as session:
        looked = await session.run("!cat /servers/slow/README.md /servers/README.md")
        assert "not known yet" in looked.text and looked.text.count("slow") == 3
        [waits] = code_in(looked.text.splitlines()[2:3])
        waiting = asyncio.create_task(session.run(f"{waits}; 'double' in dir(servers.slow)"))
        await until(lambda: session.busy, "it waits")
        gate.touch()
        assert (await waiting).value is True


# Searches say how much they leave out


async def test_a_list_says_how_many_more_there_are_and_the_way_to_them(client: Client) -> None:
    *tools, rest = await search(client, query="", server="plenty")
    assert len(tools) == 10
    assert rest.startswith(f"[and {SHELVES + 2 - 10} more: a larger limit (up to 100) or a server")
    assert "list_mcp_tools()" in rest
    *tools, rest = await search(client, query="", server="plenty", limit=100)
    assert len(tools) == 100 and f"and {SHELVES + 2 - 100} more" in rest
    assert await run(client, "len(list_mcp_tools('plenty'))") == f"{SHELVES + 2}\n"


async def test_a_query_says_of_how_many_it_shows_the_best(client: Client) -> None:
    *tools, rest = await search(client, query="shelf", server="plenty")
    assert len(tools) == 10 and rest.startswith(f"[the best 10 of {SHELVES + 2} tools: ")


async def test_a_search_that_shows_all_that_fits_says_no_more(client: Client) -> None:
    found = await search(client, query="twice a number", server="plenty", limit=100)
    assert found[0] == "plenty.double: Twice a number." and "more" not in found[-1]
    full = await search(client, query="twice a number", detail_level="full", server="plenty")
    assert "tools:" not in full[-1]


async def test_a_search_that_finds_nothing_says_what_to_do(client: Client) -> None:
    [line] = await search(client, query="zzzzqqqq")
    assert "an empty query lists all" in line


async def test_a_search_in_code_says_it_too_whatever_the_code_does_with_it(client: Client) -> None:
    words = f"and {SHELVES + 2 - 10} more"
    shown = await run(client, "for _ in range(3): found = search_tools(server='plenty')")
    assert shown.count(words) == 1 and "search_tools" in shown
    shown = await run(client, "found = await search_tools(server='plenty')\n1")
    assert shown.count(words) == 1
    assert words not in await run(client, "len(found)")


async def test_a_tool_whose_name_is_no_name_in_python_comes_with_the_one_it_has(
    client: Client,
) -> None:
    [line, *_] = await search(client, query="fetch a web page", server="plenty")
    assert line.startswith("plenty.get-page (servers.plenty.get_page): Fetch")
    assert "the page at x" in await run(client, "servers.plenty.get_page(url='x')")


# Servers that are not available


async def test_a_server_that_is_down_is_told_of_once_and_without_paths(client: Client) -> None:
    asked = {"query": "shelf", "server": "plenty"}
    first = text_of(await client.call_tool("search_tools", asked))
    assert "[not available: b-roken." in first and "`divingbell servers`" in first
    again = text_of(await client.call_tool("search_tools", asked))
    assert "not available" not in again
    result = await client.call_tool("execute_python", {"code": "call_mcp_tool('b-roken.x', {})"})
    assert result.is_error and "is not available" in text_of(result)
    for text in (first, text_of(result)):
        assert "secret-folder" not in text and "/opt" not in text


async def test_whoever_searches_a_server_that_is_down_is_told_so_each_time(client: Client) -> None:
    for _ in range(2):
        result = await client.call_tool("search_tools", {"query": "x", "server": "b-roken"})
        assert result.is_error and "the server b-roken is not available" in text_of(result)
        nothing = await client.call_tool("search_tools", {"query": "zzzzqqqq"})
        assert "[not available: b-roken." in text_of(nothing)
        code = "search_tools('x', server='b-roken')"
        result = await client.call_tool("execute_python", {"code": code})
        assert result.is_error and "the server b-roken is not available" in text_of(result)


# Calls and folders


async def test_calls_that_were_refused_are_not_told_as_made(client: Client) -> None:
    code = "servers.plenty.double(number=1)\ncall_mcp_tool('plenty.double', {'number': 'x'})"
    result = await client.call_tool("execute_python", {"code": code})
    assert result.is_error and (result.structured_content or {})["calls"] == {"plenty.double": 1}


async def test_folders_that_are_mounted_are_named(tmp_path: Path, era: Era) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "sales.csv").write_text("a\n1\n")
    async with Divingbell(pool=0, preload=[], mounts={"/data": str(tmp_path)}) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            assert "Folders to read: /data." in (client.instructions or "")
            await run(client, "open('/data/sales.csv').read()")
            result = await client.call_tool("execute_python", {"code": "open('/home/x/y.csv')"})
            assert "/workspace, where code and people put files, and /data." in text_of(result)
        await surface.close()


# The list of servers changes


async def test_servers_that_come_and_go_are_told_to_whoever_asks_next(
    surface: Surface, bell: Divingbell, era: Era
) -> None:
    command, arguments = real_servers.fixture("workshop")
    before = surface.server.instructions
    bell.gateway.add(Server("later", command=command, args=tuple(arguments)))
    try:
        async with Client(surface.server, mode=era, cache=None) as client:
            assert "b_roken, later, plenty, shop" in (client.instructions or "")
            [found] = [one for one in (await client.list_tools()).tools if "search" in one.name]
            assert "later" in (found.description or "")
            assert "'later'" in await run(client, "dir(servers)")
    finally:
        await bell.gateway.remove("later")
    assert surface.server.instructions == before
    async with Client(surface.server, mode=era, cache=None) as client:
        assert "later" not in await run(client, "dir(servers)")


async def test_a_client_of_the_older_protocol_hears_that_the_texts_are_others(
    surface: Surface, bell: Divingbell
) -> None:
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.append(type(message).__name__)

    command, arguments = real_servers.fixture("workshop")
    async with Client(surface.server, mode="legacy", message_handler=hear) as client:
        await client.list_tools()
        bell.gateway.add(Server("later", command=command, args=tuple(arguments)))
        try:
            await until(lambda: "ToolListChangedNotification" in heard, "it is told")
        finally:
            await bell.gateway.remove("later")


KEY = "sk-proj-" + "Tq8vXz2Lm4Rw9Kp3Hs7Yd1Fg6Jc5Nb0VaQeUiOtP" * 2
EXAMPLE = re.compile(r"words such as (\[([A-Z_]+)_[0-9]+\]) stand for them")


async def token_in(client: Client, code: str, kind: str) -> str:
    [token] = re.findall(rf"\[{kind}_[0-9]+\]", (await run(client, code)).partition("such as")[0])
    return str(token)


@pytest.mark.parametrize("privacy", ["secrets", "personal"])
async def test_what_the_instructions_say_of_tokens_is_so(
    era: Era, privacy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    sent: list[str] = []

    def look() -> dict[str, str]:
        return {"email": "ann@example.org", "key": KEY}

    def send(text: str) -> str:
        sent.append(text)
        return "sent"

    async with Divingbell(
        pool=0, privacy=privacy, tools=[look, send], servers={"plenty": entry(3)}
    ) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            words = client.instructions or ""
            [(example, kind)] = EXAMPLE.findall(words)
            assert "as it stands and in quotes, in code or arguments" in words
            look_at = {"EMAIL": "email", "API_KEY": "key"}[kind]
            value = KEY if look_at == "key" else "ann@example.org"
            shown = await token_in(client, f"servers.host.look()['{look_at}']", kind)
            assert re.sub("[0-9]+", "", shown) == re.sub("[0-9]+", "", example)
            # In code, as a text and in a longer one; "arguments" are those of tools.
            await run(client, f'servers.host.send("{shown}")')
            await run(client, f'servers.host.send(text="to {shown}!")')
            await run(client, f'call_mcp_tool("host.send", {{"text": "{shown}"}})')
            assert sent == [value, f"to {value}!", value]
            assert ("personal data" in words.lower()) == (privacy == "personal")
            # A secret goes to the server that it came from, and no other.
            secret = await token_in(client, "servers.host.look()['key']", "API_KEY")
            await run(client, f'servers.host.send("{secret}")')
            assert sent[-1] == KEY
            refused = await client.call_tool(
                "execute_python", {"code": f'servers.plenty.get_page(url="{secret}")'}
            )
            assert refused.is_error and "is sent nowhere else" in text_of(refused)
        await surface.close()
