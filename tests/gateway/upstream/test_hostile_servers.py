"""Servers that misbehave, seen from code in a session: each has a clear outcome."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Result, Session

PATH = Path(__file__).parents[2] / "servers" / "hostile.py"
GOOD = Path(__file__).parents[2] / "servers" / "galley.py"
MODES = (
    "hangs", "noise", "dies", "garbage", "endless", "wrong", "shapes", "names", "descriptions",
    "schemas",
)  # fmt: skip


def entry(mode: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(PATH), mode], "start_timeout": 15}


@pytest.fixture(scope="module")
async def harbour() -> AsyncIterator[Divingbell]:
    """All of them at once, and a good one: what one of them does costs the others nothing."""
    servers: dict[str, Any] = {mode: entry(mode) for mode in MODES}
    servers["hangs"]["start_timeout"] = servers["noise"]["start_timeout"] = 2
    servers["shapes"]["timeout"] = 2
    servers["galley"] = {"command": sys.executable, "args": [str(GOOD)]}
    async with Divingbell(pool=0, servers=servers) as bell:
        yield bell


@asynccontextmanager
async def opened(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session
        after = await session.run("servers.galley.add(1, 1)")
        assert after.value == 2, f"the others suffer: {after.error}"


@pytest.fixture
async def session(harbour: Divingbell) -> AsyncIterator[Session]:
    async with opened(harbour) as session:
        yield session


async def failure(session: Session, call: str) -> tuple[str, str]:
    """The code and the words of a call that has to fail."""
    code = f"try:\n    {call}\nexcept ToolError as error:\n    found = error\n"
    result = await session.run(code + "found.code, str(found)", timeout=60)
    assert result.status == "ok", str(result.error)[:2000]
    kind, words = result.value
    return kind, words


async def good(session: Session, code: str) -> Result:
    result = await session.run(code, timeout=60)
    assert result.status == "ok", result.error
    return result


# When it starts


@pytest.mark.parametrize("mode", ["hangs", "noise"])
async def test_a_server_that_never_gets_ready_is_told_where_it_is_used(
    session: Session, mode: str
) -> None:
    kind, words = await failure(session, f"call_mcp_tool('{mode}.work', {{'x': ''}})")
    assert kind == "tool_unavailable"
    assert f"the server {mode} is not available" in words
    result = await session.run(f"from servers.{mode} import work")
    assert result.error is not None and f"the server {mode} is not available" in str(result.error)


async def test_a_search_is_not_held_up_for_ever_by_a_server_that_hangs(session: Session) -> None:
    assert "galley.add" in str((await good(session, "search_tools('add two numbers')")).value)


# In a call


async def test_a_server_that_dies_in_a_call_says_so_and_comes_back(session: Session) -> None:
    for _ in range(2):
        kind, words = await failure(session, "servers.dies.work(x='')")
        assert kind == "tool_unavailable"
        assert "died during the call; it may have done what it was asked, or not" in words
        assert "status 9" in words and "a hole in the hull" in words


async def test_lines_that_are_no_json_are_passed_over(session: Session) -> None:
    assert (await good(session, "servers.garbage.work(x='a')")).value == "work: {'x': 'a'}"


async def test_an_answer_of_200_megabytes_is_cut_off(session: Session) -> None:
    kind, words = await failure(session, "servers.endless.work(x='')")
    assert kind == "tool_unavailable" and "more than 32 MB" in words


@pytest.mark.parametrize(
    ("given", "words"), [("text", "n"), ("none", "n"), ("list", "list")], ids=str
)
async def test_a_result_that_breaks_the_servers_own_schema_is_an_error(
    session: Session, given: str, words: str
) -> None:
    kind, said = await failure(session, f"servers.wrong.wrong(x='{given}')")
    assert kind == "tool_result"
    assert "not what the server's own schema says" in said and words in said
    assert "The call was made" in said


@pytest.mark.parametrize("shape", ["nothing", "text", "list", "content", "block", "structured"])
async def test_a_result_of_the_wrong_shape_is_an_error_of_that_call(
    session: Session, shape: str
) -> None:
    result = await session.run(
        f"try: found = repr(servers.shapes.work(x='{shape}'))\n"
        "except ToolError as error: found = error.code\nfound",
        timeout=30,
    )
    assert result.status == "ok", result.error
    assert result.value in ("tool_result", "tool_error", "tool_timeout", "[1]")


async def test_an_image_that_is_none_harms_only_who_asked_for_it(session: Session) -> None:
    result = await session.run("servers.shapes.work(x='image')")
    assert result.status in ("ok", "error")
    assert all(output.type != "../x" for output in result.outputs)


# What it says of itself


async def test_hostile_names_become_files_in_the_servers_own_folder(session: Session) -> None:
    code = (
        "import pathlib\n[sorted(p.name for p in pathlib.Path('/servers').iterdir()), "
        "sorted(p.name for p in pathlib.Path('/servers/names').iterdir())]"
    )
    await good(session, "import servers.names")
    tops, files = (await good(session, code)).value
    assert set(tops) <= {"README.md", *MODES, "galley"}
    assert len(files) == 7 and all(
        name.removesuffix(".py").isidentifier() for name in files[:-1] if name != "README.md"
    )


@pytest.mark.parametrize(
    ("function", "name"), [("x", "../../x"), ("import_os", "import os"), ("a_b", "a/../b")]
)
async def test_a_tool_with_a_hostile_name_can_still_be_called(
    session: Session, function: str, name: str
) -> None:
    result = await good(session, f"call_mcp_tool('names.{name}', {{'x': '1'}})")
    assert result.value == f"{name}: {{'x': '1'}}"


async def test_a_description_can_not_break_out_of_its_file(session: Session) -> None:
    for name in ("colour", "docstring", "raw", "quotes", "orders"):
        result = await good(session, f"servers.descriptions.{name}(x='1')")
        assert result.value == f"{name}: {{'x': '1'}}"
    code = "print(*[open(f'/servers/descriptions/{n}').read() for n in {names}])"
    code = code.replace("{names}", "__import__('os').listdir('/servers/descriptions')")
    shown = (await good(session, code)).text
    assert "\x1b" not in shown and "\x9b" not in shown and "Red" in shown
    found = (await good(session, "search_tools('red', 'full', server='descriptions')")).value
    assert "\x1b" not in str(found) and "\\x1b" not in str(found)


async def test_orders_in_a_description_are_shown_and_not_followed(session: Session) -> None:
    result = await good(session, "get_mcp_tool_details('descriptions.orders')")
    assert "Ignore previous instructions" in str(result.value)
    assert result.calls == ()


@pytest.mark.parametrize("name", ["itself", "tree", "ring", "large"])
async def test_a_schema_without_end_or_of_a_megabyte_can_be_read_and_called(
    session: Session, name: str
) -> None:
    code = f"len(get_mcp_tool_details('schemas.{name}')['signature'])"
    details = (await good(session, code)).value
    assert details < 5_000
    argument = {"large": "property_7='a'", "itself": "x={}"}.get(name, "child={'child': {}}")
    result = await good(session, f"servers.schemas.{name}({argument})")
    assert str(result.value).startswith(f"{name}: ")
    if name != "large":  # past a megabyte nothing is checked here, the server does that
        kind, words = await failure(session, f"call_mcp_tool('schemas.{name}', {{'wrong': 7}})")
        assert kind == "tool_arguments" and len(words) < 20_000


# Calls that user code forges


async def test_a_forged_number_is_answered_to_its_own_session_only(harbour: Divingbell) -> None:
    async with opened(harbour) as one, opened(harbour) as two:
        slow = asyncio.create_task(one.run("servers.galley.sleep(0.5)"))
        forged = (
            "from divingbell_inside import frames, tools\n"
            "for number in [*range(50), 2**62, -1]:\n"
            f"    header = {{'event': 'call', 'id': 10**6 + number, 'session': {one.id!r}}}\n"
            "    header['name'] = 'galley.nothing'\n"
            "    tools._line._outlet.send(frames.pack(header))\n"
            "    tools._line._outlet.send(frames.pack({'event': 'cancel', 'id': number}))\n"
            "servers.galley.add(2, 2)"
        )
        assert (await good(two, forged)).value == 4
        assert (await slow).value == "slept 0.5 s"


async def test_refusals_of_any_length_arrive(session: Session) -> None:
    kind, words = await failure(session, "search_tools('x', 'y' * 900_000)")
    assert kind == "tool_arguments" and len(words) < 100_000


async def test_two_calls_with_one_number_end_the_line_and_not_the_session(
    session: Session,
) -> None:
    code = (
        "from divingbell_inside import frames, tools\nimport time\n"
        "for _ in range(2):\n"
        "    header = {'event': 'call', 'id': 10**9, 'name': 'galley.sleep'}\n"
        "    tools._line._outlet.send(frames.pack(header, b'{\"seconds\": 20}'))\n"
        "time.sleep(20)"
    )
    result = await session.run(code)
    assert result.status == "killed" and "makes no sense" in str(result.error)


async def test_reading_a_resource_is_listed_like_any_other_call(session: Session) -> None:
    result = await good(session, "servers.galley.read_resource('notes://today')")
    assert [call.status for call in result.calls] == ["ok"]
    assert "read_resource" in result.calls[0].name and "notes://today" in result.calls[0].arguments
