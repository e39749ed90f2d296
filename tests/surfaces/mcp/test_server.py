"""The tools and resources that a client sees, in both eras of the protocol."""

import asyncio
import base64
import re

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated

from divingbell.session import ownership
from divingbell.surfaces.mcp import file_reads, workspace
from divingbell.surfaces.mcp.callers import OVER_STDIO
from divingbell.surfaces.mcp.definitions import NAMES
from divingbell.surfaces.mcp.server import Surface
from tests.surfaces.mcp.conftest import Listener, text_of
from tests.waiting import PATIENCE, until

OWN = OVER_STDIO
PNG = b"\x89PNG"


async def test_a_client_sees_a_handful_of_tools_and_how_to_use_them(client: Client) -> None:
    assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
    assert "Servers: shop\n" in (client.instructions or "")


async def test_code_runs_and_its_output_comes_back(client: Client) -> None:
    result = await client.call_tool("execute_python", {"code": "print('hello')\n6 * 7"})
    assert text_of(result) == "hello\n42\n"
    assert not result.is_error
    assert result.structured_content == {
        "status": "ok",
        "session_id": "default",
        "output": "hello\n42\n",
        "value": 42,
    }
    assert result.meta is not None and "divingbell/usage" in result.meta


async def test_a_value_is_data_that_says_what_it_is_and_never_text(client: Client) -> None:
    code = "{'days': {1}, 'price': __import__('decimal').Decimal('1.10')}"
    data = await client.call_tool("execute_python", {"code": code})
    assert data.structured_content["value"] == {
        "days": {"$set": [1]},
        "price": {"$decimal": "1.10"},
    }
    for code in ("print", "'x' * 5_000", "list(range(5_000))"):
        other = await client.call_tool("execute_python", {"code": code})
        assert "value" not in other.structured_content


async def test_variables_stay_from_call_to_call(client: Client) -> None:
    await client.call_tool("execute_python", {"code": "x = 5"})
    assert text_of(await client.call_tool("execute_python", {"code": "x + 1"})) == "6\n"


async def test_code_that_shows_nothing_says_so(client: Client) -> None:
    result = await client.call_tool("execute_python", {"code": "y = 1"})
    assert "print" in text_of(result)


async def test_an_error_is_told_with_its_place(client: Client) -> None:
    result = await client.call_tool("execute_python", {"code": "print('so far')\n1 / 0"})
    assert result.is_error
    assert text_of(result).startswith("so far\n")
    assert "ZeroDivisionError" in text_of(result)
    assert result.structured_content["error"]["type"] == "ZeroDivisionError"
    assert result.structured_content["status"] == "error"


async def test_a_plot_comes_as_an_image(client: Client) -> None:
    code = "import matplotlib.pyplot as plt\nprint('before')\n_ = plt.plot([1, 2])\nplt.show()"
    result = await client.call_tool("execute_python", {"code": code})
    words, image = result.content
    assert isinstance(words, types.TextContent) and words.text == "before\n"
    assert isinstance(image, types.ImageContent) and image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(PNG)


async def test_who_reads_the_structured_content_only_knows_of_images(client: Client) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    result = await client.call_tool("execute_python", {"code": code})
    [image] = result.content
    assert isinstance(image, types.ImageContent)
    [mention] = result.structured_content["images"]
    raw = base64.b64decode(image.data)
    assert (mention["type"], mention["bytes"]) == ("image/png", len(raw))
    assert mention["path"] in result.structured_content["output"]
    [kept] = (await client.read_resource(mention["uri"])).contents
    assert isinstance(kept, types.BlobResourceContents) and base64.b64decode(kept.blob) == raw


async def test_a_page_that_a_model_cannot_see_is_named_and_can_be_read(client: Client) -> None:
    code = "from IPython.display import HTML\nHTML('<b>bold</b>')"
    result = await client.call_tool("execute_python", {"code": code})
    [mention] = result.structured_content["displays"]
    assert text_of(result) == (
        f"[HTML: text/html, 11 bytes, can't be seen here; kept in {mention['path']}]\n"
    )
    [kept] = (await client.read_resource(mention["uri"])).contents
    assert isinstance(kept, types.TextResourceContents) and kept.text == "<b>bold</b>"


async def test_images_beyond_the_first_twenty_are_named(client: Client) -> None:
    code = "from PIL import Image\nfor i in range(22): display(Image.new('RGB', (9, 9)))"
    result = await client.call_tool("execute_python", {"code": code})
    assert [block.type for block in result.content] == ["image"] * 20 + ["text"]
    assert len(result.structured_content["images"]) == 20
    assert text_of(result).count("kept in /workspace/.outputs/cell-") == 2


async def test_an_error_begins_a_line(client: Client) -> None:
    result = await client.call_tool("execute_python", {"code": "print('so far', end='')\n1 / 0"})
    assert text_of(result).startswith("so far\nTraceback (most recent call last):\n")
    assert result.structured_content["output"] == text_of(result)


async def test_a_cell_that_takes_too_long_is_stopped(client: Client) -> None:
    code = "import time\ntime.sleep(60)"
    result = await client.call_tool("execute_python", {"code": code, "timeout": 0.3})
    assert result.is_error
    assert result.structured_content["status"] == "timeout"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"code": 5},
        {"code": "1", "timeout": -1},
        {"code": "1", "timeout": True},
        {"code": "1", "timeout": 1e9},
        {"code": "1", "session_id": "../other"},
        {"code": "1", "session_id": "mcp:0"},
        {"code": "1", "session_id": 7},
    ],
    ids=str,
)
async def test_arguments_that_make_no_sense_are_refused_with_a_word(
    client: Client, arguments: dict[str, object]
) -> None:
    result = await client.call_tool("execute_python", arguments)
    assert result.is_error
    assert text_of(result)


async def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(client: Client) -> None:
    with pytest.raises(MCPError) as raised:
        await client.call_tool("no_such_tool", {})
    assert raised.value.code == types.INVALID_PARAMS


# Progress, cancellation


async def test_output_is_told_while_the_cell_runs(client: Client, listener: Listener) -> None:
    code = "import time\nfor i in range(3):\n    print('line', i)\n    time.sleep(0.15)"
    await client.call_tool("execute_python", {"code": code}, progress_callback=listener.on_progress)
    told = [message for _, message in listener.progress]
    assert told[0] == "line 0"
    assert [number for number, _ in listener.progress] == sorted({n for n, _ in listener.progress})


async def test_cancelling_the_request_interrupts_the_cell(client: Client, surface: Surface) -> None:
    await client.call_tool("execute_python", {"code": "import time; kept = 1"})
    running = asyncio.create_task(client.call_tool("execute_python", {"code": "time.sleep(300)"}))
    [(_, session)] = surface.owned.of(OWN)
    await until(lambda: session.cells == 2 and session.busy, "the cell runs")
    running.cancel()
    await asyncio.wait([running], timeout=PATIENCE)
    await until(lambda: not session.busy, "the cell has ended")
    assert text_of(await client.call_tool("execute_python", {"code": "kept"})) == "1\n"


# Tools of others


async def test_tools_are_found_by_what_they_do(client: Client) -> None:
    found = await client.call_tool("search_tools", {"query": "say something on stderr"})
    assert text_of(found).startswith("shop.complain: Say something on stderr.")
    names = await client.call_tool("search_tools", {"query": "echo", "detail_level": "name_only"})
    assert "shop.echo" in text_of(names).splitlines()
    full = await client.call_tool("search_tools", {"query": "echo", "detail_level": "full"})
    assert '"input_schema"' in text_of(full)


async def test_a_search_can_be_for_servers(client: Client) -> None:
    given = {"query": "say something on stderr", "detail_level": "servers"}
    found = text_of(await client.call_tool("search_tools", given))
    assert re.match(r"shop: \d+ tools, such as shop\.complain", found)
    given |= {"query": "echo | say it back", "detail_level": "name_only", "server": "shop"}
    assert "shop.echo" in text_of(await client.call_tool("search_tools", given)).splitlines()


@pytest.mark.parametrize(
    "arguments",
    [{"query": "x", "limit": 0}, {"query": "x", "detail_level": "all"}, {"query": 3},
     {"query": "x", "server": "nobody"}],
    ids=str,
)  # fmt: skip
async def test_a_search_that_makes_no_sense_is_refused(
    client: Client, arguments: dict[str, object]
) -> None:
    assert (await client.call_tool("search_tools", arguments)).is_error


async def test_code_calls_the_tools_behind(client: Client) -> None:
    code = "from servers.shop import echo\necho(text='over there')"
    result = await client.call_tool("execute_python", {"code": code})
    assert "over there" in text_of(result)
    assert result.structured_content["calls"] == {"shop.echo": 1}
    assert result.meta is not None and result.meta["divingbell/ledger"]["calls"] == 1


def _ledger(result: types.CallToolResult) -> dict[str, int]:
    assert result.meta is not None
    ledger: dict[str, int] = result.meta["divingbell/ledger"]
    return ledger


async def test_definitions_are_spared_once_a_conversation_and_not_with_each_session(
    surface: Surface, era: str
) -> None:
    for _ in range(2):
        async with Client(surface.server, mode=era) as client:
            made = [
                _ledger(await client.call_tool("execute_python", {"code": "1", "session_id": name}))
                for name in ("one", "one", "two")
            ]
            spared, *others = [ledger["direct_definition_tokens"] for ledger in made]
            assert spared > 300 and others == [0, 0]
            overhead, *others = [ledger["overhead_tokens"] for ledger in made]
            assert 400 < overhead < 600 and others == [0, 0]
        await surface.leave(OWN.conversation)
        await surface.owned.leave_all()


async def test_the_person_is_asked_for_approval_and_says_yes(
    client: Client, listener: Listener
) -> None:
    code = "from servers.shop import complain\nprint(complain(text='a'))"
    result = await client.call_tool("execute_python", {"code": code})
    assert text_of(result) == "said\n"
    assert "shop.complain" in listener.asked[0] and "it is loud" in listener.asked[0]


async def test_the_person_is_asked_for_approval_and_says_no(
    client: Client, listener: Listener
) -> None:
    listener.answer = types.ElicitResult(action="decline")
    code = "from servers.shop import complain\ncomplain(text='a')"
    result = await client.call_tool("execute_python", {"code": code})
    assert result.is_error and "denied" in text_of(result)
    assert len(listener.asked) == 1


async def test_a_client_that_can_not_ask_is_told_that_nobody_could_be_asked(
    surface: Surface, era: str
) -> None:
    code = "from servers.shop import complain\ncomplain(text='a')"
    async with Client(surface.server, mode=era) as mute:
        result = await mute.call_tool("execute_python", {"code": code})
    assert result.is_error and "needs approval" in text_of(result)


async def test_a_question_of_an_upstream_server_reaches_the_person(
    client: Client, listener: Listener
) -> None:
    listener.answer = types.ElicitResult(action="accept", content={"colour": "red"})
    code = "from servers.shop import paint\nprint(paint())"
    result = await client.call_tool("execute_python", {"code": code})
    assert listener.asked == ["shop asks: Which colour?"]
    assert text_of(result) == "painted red\n"


async def test_several_questions_of_one_cell_are_all_answered(
    client: Client, listener: Listener
) -> None:
    listener.answer = types.ElicitResult(action="accept", content={"colour": "red"})
    code = (
        "import asyncio\nfrom servers.shop import paint\n"
        "print(await asyncio.gather(paint(), paint(), paint()))"
    )
    result = await client.call_tool("execute_python", {"code": code})
    assert text_of(result) == "['painted red', 'painted red', 'painted red']\n"


# Sessions


async def test_a_client_may_keep_several_sessions(client: Client) -> None:
    for name in ("one", "two"):
        code = f"who = {name!r}"
        await client.call_tool("execute_python", {"code": code, "session_id": name})
    result = await client.call_tool("execute_python", {"code": "who", "session_id": "one"})
    assert "one" in text_of(result)
    told = await client.call_tool("list_sessions", {})
    listed = told.structured_content["sessions"]
    assert {session["session_id"] for session in listed} == {"one", "two"}
    assert sorted(text_of(told).split("\n")) == ["one: 2 cells", "two: 1 cell"]


async def test_the_session_without_a_name_is_called_default(client: Client) -> None:
    await client.call_tool("execute_python", {"code": "z = 3"})
    result = await client.call_tool("execute_python", {"code": "z", "session_id": "default"})
    assert text_of(result) == "3\n"


async def test_a_closed_session_is_gone_and_a_new_one_is_empty(client: Client) -> None:
    await client.call_tool("execute_python", {"code": "z = 3", "session_id": "one"})
    closed = await client.call_tool("close_session", {"session_id": "one"})
    assert not closed.is_error
    assert (await client.call_tool("close_session", {"session_id": "one"})).is_error
    again = await client.call_tool("execute_python", {"code": "z", "session_id": "one"})
    assert again.is_error and "NameError" in text_of(again)


async def test_a_session_that_has_ended_by_itself_is_missed_once(
    client: Client, surface: Surface
) -> None:
    await client.call_tool("execute_python", {"code": "z = 3"})
    [(_, session)] = surface.owned.of(OWN)
    await session.close("it was idle")
    result = await client.call_tool("execute_python", {"code": "5"})
    assert text_of(result).startswith("5\n[your earlier session has ended")
    assert text_of(await client.call_tool("execute_python", {"code": "5"})) == "5\n"


async def test_one_client_can_not_take_every_place(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "MAX_SESSIONS", 1)
    await client.call_tool("execute_python", {"code": "1"})
    result = await client.call_tool("execute_python", {"code": "1", "session_id": "more"})
    assert result.is_error and "close_session" in text_of(result)


# Files


async def test_files_of_the_workspace_are_resources(client: Client) -> None:
    code = "open('a b.txt', 'w').write('words')\nopen('raw.bin', 'wb').write(bytes([0, 255]))"
    await client.call_tool("execute_python", {"code": code})
    found = {item.name: item for item in (await client.list_resources()).resources}
    assert set(found) == {"a b.txt", "raw.bin"}
    assert found["a b.txt"].uri == "divingbell://sessions/default/files/a%20b.txt"
    [words] = (await client.read_resource(found["a b.txt"].uri)).contents
    assert isinstance(words, types.TextResourceContents) and words.text == "words"
    [raw] = (await client.read_resource(found["raw.bin"].uri)).contents
    assert isinstance(raw, types.BlobResourceContents)
    assert base64.b64decode(raw.blob) == bytes([0, 255])


async def test_the_template_says_how_files_are_named(client: Client) -> None:
    [template] = (await client.list_resource_templates()).resource_templates
    assert template == workspace.TEMPLATE


@pytest.mark.parametrize(
    "uri",
    [
        "divingbell://sessions/default/files/none.txt",
        "divingbell://sessions/other/files/a.txt",
        "divingbell://sessions/default/files/..%2F..%2Fetc%2Fpasswd",
        "divingbell://sessions/default/files//etc/passwd",
        "divingbell://sessions/",
        "file:///etc/passwd",
    ],
)
async def test_what_is_no_file_of_a_session_can_not_be_read(client: Client, uri: str) -> None:
    await client.call_tool("execute_python", {"code": "open('a.txt', 'w').close()"})
    with pytest.raises(MCPError) as raised:
        await client.read_resource(uri)
    assert raised.value.code == types.INVALID_PARAMS
    assert raised.value.error.data == {"uri": uri}


async def test_a_file_that_is_too_large_is_not_read(client: Client) -> None:
    code = f"open('big', 'wb').truncate({file_reads.MAX_READ + 1})"
    await client.call_tool("execute_python", {"code": code})
    with pytest.raises(
        MCPError, match="5,242,881 bytes, 5,242,880 are allowed: have execute_python"
    ):
        await client.read_resource("divingbell://sessions/default/files/big")


async def test_nothing_is_listed_and_no_session_made_before_code_has_run(
    client: Client, surface: Surface
) -> None:
    assert (await client.list_resources()).resources == []
    assert list(surface.owned.of(OWN)) == []


async def test_a_client_that_subscribes_is_told_when_a_file_changes(surface: Surface) -> None:
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.append(message)

    def told() -> set[str]:
        return {
            one.params.uri for one in heard if isinstance(one, types.ResourceUpdatedNotification)
        }

    uri = "divingbell://sessions/default/files/a.txt"
    async with Client(surface.server, mode="legacy", message_handler=hear) as client:
        await client.call_tool("execute_python", {"code": "open('a.txt', 'w').write('1')"})
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await client.session.send_request(request, types.EmptyResult)
        await client.call_tool("execute_python", {"code": "open('b.txt', 'w').write('1')"})
        await until(
            lambda: any(isinstance(one, types.ResourceListChangedNotification) for one in heard),
            "the list is told",
        )
        assert told() == set()
        await client.call_tool("execute_python", {"code": "open('a.txt', 'w').write('22')"})
        await until(lambda: told() == {uri}, "the file is told")


async def test_a_client_that_listens_is_told_when_a_file_changes(surface: Surface) -> None:
    uri = "divingbell://sessions/default/files/a.txt"
    async with (
        Client(surface.server, cache=None) as client,
        client.listen(resource_subscriptions=[uri]) as events,
    ):
        await client.call_tool("execute_python", {"code": "open('a.txt', 'w').write('1')"})
        async with asyncio.timeout(PATIENCE):
            event = await anext(aiter(events))
    assert event == ResourceUpdated(uri=uri)
