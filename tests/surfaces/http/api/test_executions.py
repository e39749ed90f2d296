"""Code over HTTP: run, watched, found again, cancelled."""

import asyncio
import gc

import httpx2
import pytest

from divingbell.surfaces.http import executions
from divingbell.surfaces.http.execution import Work
from tests.surfaces.http.serving import EVENTS, heard
from tests.waiting import until

API = "/api/v1"


async def test_code_is_run_and_its_result_is_json(anne: httpx2.AsyncClient) -> None:
    answer = await anne.post(f"{API}/sessions/one/execute", json={"code": "print(1); 40 + 2"})
    assert answer.status_code == 200
    told = answer.json()
    assert told["success"] and told["value"] == 42 and told["output"] == "1\n42\n"
    assert told["session"] == "one" and told["execution"].startswith("x-")
    again = await anne.post(f"{API}/sessions/one/execute", json={"code": "_ + 1"})
    assert again.json()["cell"] == told["cell"] + 1


async def test_code_is_run_in_a_session_that_ends_with_it(anne: httpx2.AsyncClient) -> None:
    answer = await anne.post(f"{API}/execute", json={"code": "1 + 1", "limits": {"timeout": 5}})
    assert answer.json()["value"] == 2

    async def is_gone() -> bool:
        listed = (await anne.get(f"{API}/sessions")).json()["items"]
        return answer.json()["session"] not in [each["id"] for each in listed]

    await until(is_gone, "the session has ended")


async def test_events_come_as_they_happen(anne: httpx2.AsyncClient) -> None:
    code = "print('a'); import sys; print('b', file=sys.stderr); 3"
    path = f"{API}/sessions/two/execute"
    async with anne.stream("POST", path, json={"code": code}, headers=EVENTS) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        found = [each async for each in heard(answer)]
    assert [each.name for each in found] == ["started", "stdout", "stderr", "result", "done"]
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert found[-1].data["result"]["value"] == 3


async def test_an_execution_is_found_again_with_its_events(anne: httpx2.AsyncClient) -> None:
    ran = (await anne.post(f"{API}/sessions/one/execute", json={"code": "print(7)"})).json()
    told = (await anne.get(f"{API}/executions/{ran['execution']}")).json()
    assert told["state"] == "ended" and told["result"] == ran
    path = f"{API}/executions/{ran['execution']}/events"
    async with anne.stream("GET", path, headers={"Last-Event-ID": "1"}) as answer:
        assert [each.name async for each in heard(answer)] == ["stdout", "done"]


async def test_a_key_finds_its_execution_again(anne: httpx2.AsyncClient) -> None:
    path, key = f"{API}/sessions/keyed/execute", {"Idempotency-Key": "k-1"}
    given = {"code": "n = globals().get('n', 0) + 1; n"}
    first = await anne.post(path, json=given, headers=key)
    second = await anne.post(path, json=given, headers=key)
    assert first.json() == second.json() and first.json()["value"] == 1
    other = await anne.post(path, json={"code": "1"}, headers=key)
    assert other.status_code == 422 and other.json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(("more", "status"), [({}, 200), ({"no name": 1}, 422)])
async def test_what_was_given_to_code_goes_with_its_end(
    anne: httpx2.AsyncClient, more: dict[str, int], status: int
) -> None:
    given = {"code": "len(pearl)", "context": {"pearl": "x" * 1000, **more}}
    path, key = f"{API}/sessions/given/execute", {"Idempotency-Key": f"given-{status}"}
    for _ in range(2):
        assert (await anne.post(path, json=given, headers=key)).status_code == status
    gc.collect()  # what has failed refers to itself
    found = [each for each in gc.get_objects() if isinstance(each, Work)]
    assert not [each for each in found if each.context and "pearl" in each.context]


async def test_what_waits_and_runs_of_one_user_is_bounded_in_bytes(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MAX_HELD", 20_000)
    path = f"{API}/sessions/heavy/execute"
    large = {"code": "1", "argv": ["x" * 15_000]}
    first = {**large, "code": "import time; time.sleep(60)"}
    async with anne.stream("POST", path, json=first, headers=EVENTS) as running:
        assert (await anext(heard(running))).name == "started"
        refused = await anne.post(path, json=large)
        assert refused.status_code == 429 and "too large together" in refused.text
        assert (await bert.post(path, json=large)).status_code == 200

    async def is_over() -> bool:
        return (await anne.post(path, json=large)).status_code == 200

    await until(is_over, "what has ended counts no more")


async def test_an_execution_is_cancelled(anne: httpx2.AsyncClient) -> None:
    path = f"{API}/sessions/long/execute"
    running = asyncio.create_task(anne.post(path, json={"code": "while True: pass"}))

    async def is_running() -> bool:
        listed = (await anne.get(f"{API}/executions", params={"session": "long"})).json()
        return [each["state"] for each in listed["items"]] == ["running"]

    await until(is_running, "the cell runs")
    [told] = (await anne.get(f"{API}/executions", params={"session": "long"})).json()["items"]
    assert (await anne.delete(f"{API}/executions/{told['id']}")).status_code == 204
    assert (await running).json()["status"] == "cancelled"


async def test_another_users_execution_is_not_there(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient
) -> None:
    ran = (await anne.post(f"{API}/sessions/one/execute", json={"code": "1"})).json()
    for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
        answer = await bert.request(method, f"{API}/executions/{ran['execution']}{path}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


async def test_executions_are_listed_in_parts(anne: httpx2.AsyncClient) -> None:
    of = {"session": "parts"}
    ran = [
        (await anne.post(f"{API}/sessions/parts/execute", json={"code": str(n)})).json()
        for n in range(3)
    ]
    newest = [each["execution"] for each in ran[::-1]]
    first = (await anne.get(f"{API}/executions", params=of | {"limit": "2"})).json()
    rest = {"limit": "2", "cursor": first["next"]}
    second = (await anne.get(f"{API}/executions", params=of | rest)).json()
    assert [each["id"] for each in first["items"] + second["items"]] == newest
    assert first["next"] == newest[1] and second["next"] is None
    elsewhere = await anne.get(f"{API}/executions", params={"session": "other"} | rest)
    assert elsewhere.status_code == 409 and elsewhere.json()["code"] == "cursor_gone"


async def test_a_key_that_is_sent_twice_at_once_runs_its_code_once(
    anne: httpx2.AsyncClient,
) -> None:
    path, key = f"{API}/sessions/twice/execute", {"Idempotency-Key": "k-2"}
    given = {"code": "import time; time.sleep(0.2); open('mark', 'a').write('x')"}
    sent = [anne.post(path, json=given, headers=key) for _ in range(4)]
    async with anne.stream("POST", path, json=given, headers=key | EVENTS) as answer:
        answers = await asyncio.gather(*sent)
        shown = [each async for each in heard(answer)]
    assert len({each.text for each in answers} | {each.status_code for each in answers}) == 2
    assert shown[-1].data["result"]["execution"] == answers[0].json()["execution"]
    assert (await anne.get(f"{API}/sessions/twice/files/mark")).text == "x"


async def test_what_code_has_used_is_told_of_its_session(anne: httpx2.AsyncClient) -> None:
    where = f"{API}/sessions/used"
    code = "import time\nkept = bytearray(b'x') * (64 << 20)\n"
    code += "while time.process_time() < 0.3: pass"
    assert (await anne.post(f"{where}/execute", json={"code": "1"})).status_code == 200
    before = (await anne.get(where)).json()
    assert (await anne.post(f"{where}/execute", json={"code": code})).json()["status"] == "ok"
    after = (await anne.get(where)).json()
    assert after["cpu_seconds"] >= before["cpu_seconds"] + 0.2
    assert after["memory"] >= before["memory"] + (60 << 20)
    assert after["memory_peak"] >= after["memory"] - (8 << 20)


async def test_a_busy_session_is_looked_at_when_its_cell_has_ended(
    anne: httpx2.AsyncClient,
) -> None:
    where = f"{API}/sessions/at-work"
    running = asyncio.create_task(
        anne.post(f"{where}/execute", json={"code": "numbers = 1\nwhile True: pass"})
    )

    async def runs() -> bool:
        listed = (await anne.get(f"{API}/executions", params={"session": "at-work"})).json()
        return [each["state"] for each in listed["items"]] == ["running"]

    await until(runs, "the cell runs")
    asked = {"code": "numb", "position": 4}
    completing = asyncio.create_task(anne.post(f"{where}/complete", json=asked))
    looking = asyncio.create_task(anne.get(f"{where}/variables"))
    assert (await anne.get(where)).json()["state"] == "running"  # whoever asks holds up nobody
    assert not completing.done() and not looking.done()
    await anne.post(f"{where}/interrupt")
    assert (await running).json()["status"] == "cancelled"
    assert "numbers" in [each["text"] for each in (await completing).json()["items"]]
    assert "numbers" in [each["name"] for each in (await looking).json()["items"]]
