"""Approvals over HTTP: the question comes to the run that waits, and to whoever may answer."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import mcp_types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from divingbell import Divingbell
from divingbell.surfaces.auth import USUAL, Tokens, hash_of
from tests import real_servers
from tests.surfaces.http.serving import ANNE, BERT, EVENTS, Site, heard, served
from tests.waiting import until

API = "/api/v1"
CODE = """
from servers.shop import complain
try:
    complain("loud")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[Site]:
    command, arguments = real_servers.fixture("workshop")
    rules = [{"tools": ["shop.complain"], "action": "ask", "reason": "it is loud"}]
    async with Divingbell(
        pool=1,
        servers={"shop": {"command": command, "args": arguments}},
        policy={"rules": rules},
    ) as bell:
        hashes = {"anne": hash_of(ANNE), "bert": hash_of(BERT)}
        async with served(bell, Tokens(hashes, USUAL)) as site:
            yield site


@pytest.mark.parametrize("word", ["yes", "no"])
async def test_a_run_that_waits_goes_on_with_the_answer(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient, word: str
) -> None:
    path = f"{API}/sessions/one/execute"
    async with anne.stream("POST", path, json={"code": CODE}, headers=EVENTS) as answer:
        found = []
        async for event in heard(answer):
            found.append(event)
            if event.name == "approval":
                asked = event.data["approval"]
                assert asked["tool"] == "shop.complain" and asked["reason"] == "it is loud"
                listed = (await anne.get(f"{API}/approvals")).json()["items"]
                assert [each["id"] for each in listed] == [asked["id"]]
                assert (await bert.get(f"{API}/approvals")).json()["items"] == []
                theirs = await bert.post(f"{API}/approvals/{asked['id']}", json={"word": "yes"})
                assert theirs.status_code == 404
                mine = await anne.post(f"{API}/approvals/{asked['id']}", json={"word": word})
                assert mine.status_code == 204
                again = await anne.post(f"{API}/approvals/{asked['id']}", json={"word": "yes"})
                assert again.status_code == 404
    names = [each.name for each in found]
    assert names[:3] == ["started", "approval", "approval_ended"] and names[-1] == "done"
    assert found[2].data["word"] == word
    denied = "was denied" in found[-1].data["result"]["output"]
    assert denied == (word == "no")


async def test_a_page_hears_of_what_happens_in_all_sessions(anne: httpx2.AsyncClient) -> None:
    heard_of: list[str] = []
    async with anne.stream("GET", f"{API}/events") as answer:
        events = heard(answer)
        assert (await anext(events)).name == "hello"
        running = asyncio.create_task(
            anne.post(f"{API}/sessions/paged/execute", json={"code": CODE})
        )
        async for event in events:
            heard_of.append(event.name)
            if event.name == "approval.asked":
                number = event.data["approval"]["id"]
                await anne.post(f"{API}/approvals/{number}", json={"word": "no"})
            if event.name == "execution.ended":
                assert event.data["session"] == "paged" and event.data["status"] == "ok"
                break
        assert (await running).status_code == 200
    wanted = ["session.opened", "execution.started", "approval.asked", "approval.answered"]
    assert [name for name in heard_of if name != "session.changed"] == [*wanted, "execution.ended"]


TWICE = """
from servers.shop import complain
complain("loud")
complain("loud")
"""


@pytest.mark.parametrize(
    ("word", "asked"),
    # In the first run, with two calls, and in the next one of the same session.
    [("yes", (2, 2)), ("always", (1, 1)), ("session", (1, 0))],
)
async def test_a_word_holds_for_a_call_a_run_or_a_session(
    anne: httpx2.AsyncClient, word: str, asked: tuple[int, int]
) -> None:
    for times in asked:
        questions = 0
        path = f"{API}/sessions/word-{word}/execute"
        async with anne.stream("POST", path, json={"code": TWICE}, headers=EVENTS) as answer:
            async for event in heard(answer):
                if event.name == "approval":
                    questions += 1
                    number = event.data["approval"]["id"]
                    given = {"word": word, "comment": "as you like"}
                    said = await anne.post(f"{API}/approvals/{number}", json=given)
                    assert said.status_code == 204
                last = event
        assert last.data["result"]["status"] == "ok" and questions == times


async def test_questions_are_listed_in_parts(anne: httpx2.AsyncClient) -> None:
    runs = [
        asyncio.create_task(anne.post(f"{API}/sessions/part-{n}/execute", json={"code": CODE}))
        for n in range(3)
    ]

    async def are_asked() -> bool:
        return len((await anne.get(f"{API}/approvals")).json()["items"]) == 3

    await until(are_asked, "three questions wait")
    whole = (await anne.get(f"{API}/approvals")).json()
    assert whole["next"] is None
    first = (await anne.get(f"{API}/approvals", params={"limit": "2"})).json()
    cursor = {"limit": "2", "cursor": first["next"]}
    second = (await anne.get(f"{API}/approvals", params=cursor)).json()
    assert first["items"] + second["items"] == whole["items"] and second["next"] is None
    for each in whole["items"]:
        await anne.post(f"{API}/approvals/{each['id']}", json={"word": "no"})
    await asyncio.gather(*runs)
    gone = await anne.get(f"{API}/approvals", params=cursor)
    assert gone.status_code == 409 and gone.json()["code"] == "cursor_gone"


@pytest.mark.parametrize("first", ["an MCP client", "the API"])
async def test_of_an_mcp_client_and_the_api_the_first_answer_counts(
    site: Site, anne: httpx2.AsyncClient, first: str
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def on_question(*_: object) -> mcp_types.ElicitResult:
        asked.set()
        await answer.wait()
        return mcp_types.ElicitResult(action="accept", content={"decision": "yes"})

    async with (
        anne.stream("GET", f"{API}/events") as page,  # somebody is there to ask
        site.client() as beside,
        Client(
            streamable_http_client(f"{site.url}/mcp", http_client=beside),
            elicitation_callback=on_question,
        ) as client,
    ):
        events = heard(page)
        assert (await anext(events)).name == "hello"
        given = {"code": CODE, "session_id": f"both-{first[-3:]}"}
        running = asyncio.create_task(client.call_tool("execute_python", given))
        await asked.wait()
        [question] = (await anne.get(f"{API}/approvals")).json()["items"]
        where = f"{API}/approvals/{question['id']}"
        if first == "the API":
            assert (await anne.post(where, json={"word": "no"})).status_code == 204
        answer.set()
        told = (await running).structured_content
        if first == "an MCP client":
            assert (await anne.post(where, json={"word": "no"})).status_code == 404
        assert told is not None
        assert ("was denied" in told["output"]) == (first == "the API")
        assert (await anne.get(f"{API}/approvals")).json()["items"] == []
