"""The end of a server: nothing new begins, what runs is given its time, and all is answered."""

import asyncio

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from divingbell import Divingbell
from divingbell.agent.scripted import Says
from divingbell.principal import Principal
from divingbell.surfaces.http.event_log import MAX_BYTES
from tests.surfaces.http.serving import ANNE, BERT, EVENTS, Site, Talking, heard, served
from tests.waiting import until

API = "/api/v1"


async def _begun(client: httpx2.AsyncClient, session: str, code: str) -> asyncio.Task[object]:
    path = f"{API}/sessions/{session}/execute"
    task = asyncio.create_task(client.post(path, json={"code": code}))

    async def runs() -> bool:
        listed = (await client.get(f"{API}/executions", params={"session": session})).json()
        return [each["state"] for each in listed["items"]] == ["running"]

    await until(runs, "the cell runs")
    return task


async def test_a_server_that_ends_cancels_what_is_left_and_delivers_it() -> None:
    async with (
        Divingbell(pool=0, interrupt_grace=0.5, service={"drain_timeout": 0.0}) as bell,
        served(bell) as site,
        site.client(ANNE) as anne,
    ):
        running = await _begun(anne, "long", "while True: pass")
        await site.app.drain()
        answer = await running
        assert isinstance(answer, httpx2.Response)
        assert answer.json()["status"] == "cancelled"
        refused = await anne.post(f"{API}/execute", json={"code": "1"})
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
        assert (await anne.get("/readyz")).status_code == 503
        assert (await anne.get("/healthz")).status_code == 200


async def test_a_server_that_ends_waits_for_cells() -> None:
    async with (
        Divingbell(pool=0, service={"drain_timeout": 60.0}) as bell,
        served(bell) as site,
        site.client(ANNE) as anne,
    ):
        code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'whole'"
        running = await _begun(anne, "short", code)
        draining = asyncio.create_task(site.app.drain())
        await until(lambda: site.app._service and site.app._service.queue.draining, "it ends")
        await anne.put(f"{API}/sessions/short/files/go", content=b"")
        answer = await running
        assert isinstance(answer, httpx2.Response) and answer.json()["value"] == "whole"
        await draining


async def test_cells_of_a_user_wait_for_their_turn_and_are_told_their_place() -> None:
    room = {"cells_of_user": 1, "waiting_of_user": 1}
    async with (
        Divingbell(pool=0, interrupt_grace=0.5, service=room) as bell,
        served(bell) as site,
        site.client(ANNE) as anne,
    ):
        running = await _begun(anne, "first", "while True: pass")
        path = f"{API}/sessions/second/execute"
        async with anne.stream("POST", path, json={"code": "2"}, headers=EVENTS) as answer:
            events = heard(answer)
            first = await anext(events)
            assert (first.name, first.data["place"]) == ("queued", 1)
            full = await anne.post(f"{API}/sessions/third/execute", json={"code": "3"})
            assert full.status_code == 429 and full.json()["code"] == "queue_full"
            await anne.post(f"{API}/sessions/first/interrupt")
            names = [each.name async for each in events]
        assert names == ["started", "result", "done"]
        await running


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "events"])
async def test_where_too_many_wait_everybody_is_told_when_to_come_again(
    headers: dict[str, str],
) -> None:
    room = {"cells": 1, "waiting": 1}
    async with (
        Divingbell(pool=0, preload=[], interrupt_grace=0.5, service=room) as bell,
        served(bell) as site,
        site.client(ANNE) as anne,
        site.client(BERT) as bert,
    ):
        running = await _begun(anne, "first", "while True: pass")
        waiting = asyncio.create_task(anne.post(f"{API}/execute", json={"code": "2"}))
        assert site.app._service is not None
        queue = site.app._service.queue
        await until(lambda: queue.waiting == 1, "the second one waits")
        full = await bert.post(f"{API}/execute", json={"code": "3"}, headers=headers)
        assert (full.status_code, full.json()["code"]) == (503, "queue_full")
        assert int(full.headers["retry-after"]) >= 1
        await anne.post(f"{API}/sessions/first/interrupt")
        assert (await waiting).json()["value"] == 2
        await running


async def test_two_runs_at_once_in_one_session_come_one_after_the_other(
    anne: httpx2.AsyncClient,
) -> None:
    where = f"{API}/sessions/both/execute"
    code = "seen = globals().setdefault('seen', [])\nseen.append('in')\n"
    code += "import time; time.sleep(0.1)\nseen.append('out')\nlist(seen)"
    together = asyncio.gather(*(anne.post(where, json={"code": code}) for _ in range(2)))
    async with anne.stream("POST", where, json={"code": code}, headers=EVENTS) as answer:
        streamed = [each async for each in heard(answer)][-1].data["result"]
    results = [streamed, *(each.json() for each in await together)]
    assert sorted(each["cell"] for each in results) == [1, 2, 3]
    assert sorted(len(each["value"]) for each in results) == [2, 4, 6]
    assert max((each["value"] for each in results), key=len) == ["in", "out"] * 3


async def test_what_is_streamed_or_answered_when_a_server_ends_is_cancelled_and_delivered() -> None:
    script = Talking()
    script.lines += [Says("Looking.", "while True: pass")]
    async with (
        Divingbell(pool=0, interrupt_grace=0.5, service={"drain_timeout": 0.0}) as bell,
        served(bell, make_model=script.made) as site,
        site.client(ANNE) as anne,
    ):
        talk = (await anne.post(f"{API}/conversations", json={})).json()["id"]
        where, said = f"{API}/conversations/{talk}/messages", {"text": "Look."}
        code = {"code": "while True: pass"}
        async with (
            anne.stream("POST", f"{API}/execute", json=code, headers=EVENTS) as run,
            anne.stream("POST", where, json=said) as answer,
        ):
            shown, told = heard(run), heard(answer)
            assert (await anext(shown)).name == "started"
            async for each in told:
                if each.name == "cell_started":
                    break
            draining = asyncio.create_task(site.app.drain())
            last = [each async for each in shown][-1]
            assert (last.name, last.data["result"]["status"]) == ("done", "cancelled")
            assert [each.name async for each in told][-1] == "cancelled"
            await draining
        refused = await anne.post(where, json=said)
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")


async def test_cells_of_mcp_and_of_conversations_wait_in_the_same_queue() -> None:
    room = {"cells_of_user": 1, "waiting_of_user": 2}
    script = Talking()
    script.lines += [Says("Let me see.", "6 * 7"), Says("It is 42.")]
    async with (
        Divingbell(pool=0, interrupt_grace=0.5, service=room) as bell,
        served(bell, make_model=script.made) as site,
        site.client(ANNE) as anne,
        site.client(ANNE) as beside,
        Client(streamable_http_client(f"{site.url}/mcp", http_client=beside)) as mcp,
    ):
        running = await _begun(anne, "first", "while True: pass")
        waiting = asyncio.create_task(mcp.call_tool("execute_python", {"code": "1+1"}))
        assert site.app._service is not None
        queue = site.app._service.queue
        await until(lambda: queue.waiting == 1, "the cell waits")
        talk = (await anne.post(f"{API}/conversations", json={})).json()["id"]
        path = f"{API}/conversations/{talk}/messages"
        answering = asyncio.create_task(anne.post(path, json={"text": "How much?"}))
        await until(lambda: queue.waiting == 2, "the conversation's cell waits behind it")
        full = await mcp.call_tool("execute_python", {"code": "2", "session_id": "other"})
        assert full.is_error and "wait already" in str(full.content)
        await anne.post(f"{API}/sessions/first/interrupt")
        told = (await waiting).structured_content
        assert told is not None and told["value"] == 2
        await running
        assert "It is 42." in (await answering).text
        assert (queue.running, queue.waiting) == (0, 0)


@pytest.mark.parametrize("word", ["cancel", "keep"])
async def test_a_client_that_leaves_ends_its_cell_unless_it_is_to_go_on(
    site: Site, word: str
) -> None:
    code = "import time\nfor _ in range(10_000): time.sleep(0.01)"
    path, given = f"{API}/sessions/left-{word}/execute", {"code": code, "on_disconnect": word}
    async with (
        site.client(ANNE) as anne,
        anne.stream("POST", path, json=given, headers=EVENTS) as answer,
    ):
        number = (await anext(heard(answer))).data["execution"]
    async with site.client(ANNE) as anne:

        async def has_ended() -> bool:
            told = (await anne.get(f"{API}/executions/{number}")).json()
            return bool(told["state"] == "ended")

        if word == "keep":
            assert not await has_ended()
            assert (await anne.delete(f"{API}/executions/{number}")).status_code == 204
        await until(has_ended, "the cell has ended")
        ended = (await anne.get(f"{API}/executions/{number}")).json()
        assert ended["result"]["status"] == "cancelled"


async def test_a_slow_reader_of_events_misses_some_and_holds_up_nobody(
    bell: Divingbell, site: Site, anne: httpx2.AsyncClient, bert: httpx2.AsyncClient
) -> None:
    size, line = 16 << 20, 1 << 12
    await bell.owned.open(Principal("anne", "", "http"), "loud", {"output": 2 * size})
    code = f"for _ in range({size // line}): print('x' * {line - 1})"
    path = f"{API}/sessions/loud/execute"
    async with anne.stream("POST", path, json={"code": code}, headers=EVENTS) as answer:
        events = heard(answer)
        number = (await anext(events)).data["execution"]  # and reads nothing more for a while
        assert site.app._service is not None
        [execution] = [each for each in site.app._service.executions.active() if each.id == number]
        await until(lambda: execution.state == "ended", "the cell has ended, read or not")
        assert execution.log.size <= MAX_BYTES + len(execution.result)
        beside = await bert.post(f"{API}/sessions/quiet/execute", json={"code": "1+1"})
        assert beside.json()["value"] == 2
        found = [event async for event in events]
    missed = sum(event.data["missed"] for event in found if event.name == "gap")
    assert missed > 0 and found[-1].name == "done"
    assert found[-1].number == missed + sum(event.name != "gap" for event in found) + 1
