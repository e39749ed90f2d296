"""Sessions over HTTP."""

import asyncio

import httpx2
import pytest

from divingbell.errors import ConfigError
from divingbell.settings.config import load
from tests.waiting import until

API = "/api/v1/sessions"


async def test_a_session_is_opened_described_and_ended(anne: httpx2.AsyncClient) -> None:
    given = {
        "id": "own", "limits": {"memory": "256MB"}, "labels": {"team": "a"}, "env": {"X": "1"},
    }  # fmt: skip
    opened = await anne.post(API, json=given)
    assert opened.status_code == 201
    told = opened.json()
    assert told["limits"]["memory"] == 256 << 20 and told["labels"] == {"team": "a"}
    assert told["state"] == "idle" and told["expires_at"] > told["created_at"]
    assert (await anne.post(API, json={"id": "own"})).status_code == 200
    ran = await anne.post(f"{API}/own/execute", json={"code": "import os; os.environ['X']"})
    assert ran.json()["value"] == "1"
    assert (await anne.get(f"{API}/own")).json()["cells"] == 1
    assert (await anne.delete(f"{API}/own")).status_code == 204
    assert (await anne.get(f"{API}/own")).status_code == 404


async def test_sessions_are_listed_in_parts(anne: httpx2.AsyncClient) -> None:
    for name in ("p1", "p2", "p3"):
        await anne.post(API, json={"id": name})
    names, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        part = (await anne.get(API, params=params)).json()
        names += [each["id"] for each in part["items"]]
        if (cursor := part["next"]) is None:
            break
    assert {"p1", "p2", "p3"} <= set(names) and names == sorted(set(names))
    for name in ("p1", "p2", "p3"):
        await anne.delete(f"{API}/{name}")


async def test_variables_are_described_completed_and_reset(anne: httpx2.AsyncClient) -> None:
    await anne.post(f"{API}/look/execute", json={"code": "numbers = [1, 2, 3]"})
    found = (await anne.get(f"{API}/look/variables")).json()["items"]
    assert [(each["name"], each["length"]) for each in found] == [("numbers", 3)]
    asked = {"code": "numb", "position": 4}
    completed = (await anne.post(f"{API}/look/complete", json=asked)).json()["items"]
    assert "numbers" in [each["text"] for each in completed]
    assert (await anne.post(f"{API}/look/reset")).status_code == 204
    assert (await anne.get(f"{API}/look/variables")).json()["items"] == []


async def test_a_cell_is_interrupted(anne: httpx2.AsyncClient) -> None:
    await anne.post(API, json={"id": "busy"})
    assert (await anne.post(f"{API}/busy/interrupt")).json() == {"interrupted": False}
    code = {"code": "while True: pass"}
    running = asyncio.create_task(anne.post(f"{API}/busy/execute", json=code))

    async def is_running() -> bool:
        return bool((await anne.get(f"{API}/busy")).json()["execution"])

    await until(is_running, "the cell runs")
    assert (await anne.post(f"{API}/busy/interrupt")).json() == {"interrupted": True}
    assert (await running).json()["status"] == "cancelled"


@pytest.mark.parametrize(
    "given",
    [
        {"id": "../x"}, {"id": ""}, {"id": 1}, {"more": 1}, {"limits": {"timeout": False}},
        {"limits": {"memory": -1}}, {"limits": {"unknown": 1}}, {"labels": {"a": 1}}, [], "x",
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_no_session_is_refused(anne: httpx2.AsyncClient, given: object) -> None:
    answer = await anne.post(API, json=given)
    assert answer.status_code == 400 and answer.json()["code"] == "invalid_request"


@pytest.mark.parametrize("given", [{"limits": {"memory": "1 parsec"}}, {"env": {"a b": "c"}}])
async def test_what_can_not_be_used_is_told(anne: httpx2.AsyncClient, given: object) -> None:
    answer = await anne.post(API, json=given)
    assert answer.status_code == 422
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "limits", [{"memory": "64GB"}, {"cores": 64}, {"processes": 100_000}, {"disk": 1 << 50}]
)
@pytest.mark.parametrize("path", [API, "/api/v1/execute"])
async def test_no_client_gets_more_than_the_settings_allow(
    anne: httpx2.AsyncClient, limits: dict[str, object], path: str
) -> None:
    given = {"limits": limits} | ({} if path == API else {"code": "1"})
    answer = await anne.post(path, json=given)
    assert (answer.status_code, answer.json()["code"]) == (422, "limit_too_large")


def test_the_most_that_clients_may_ask_for_is_a_setting() -> None:
    settings = load(None, {"service": {"limits": {"memory": "2GB"}}}, environment={})
    most = settings.service.most(settings.limits)
    assert (most.memory, most.cores) == (2 << 30, settings.limits.cores)
    assert most.timeout == settings.limits.ceiling
    with pytest.raises(ConfigError, match="memroy"):
        load(None, {"service": {"limits": {"memroy": "2GB"}}}, environment={})


async def test_a_session_that_is_idle_for_as_long_as_was_said_ends(
    anne: httpx2.AsyncClient,
) -> None:
    made = await anne.post(API, json={"id": "brief", "idle_timeout": 0.3})
    assert made.status_code == 201 and made.json()["expires_at"]
    longer = await anne.post(API, json={"id": "longer", "idle_timeout": 3600})
    assert longer.json()["expires_at"] > made.json()["expires_at"]

    async def is_gone() -> bool:
        return (await anne.get(f"{API}/brief")).status_code == 404

    await until(is_gone, "the session has ended")
    assert (await anne.get(f"{API}/longer")).status_code == 200
    again = await anne.post(f"{API}/brief/execute", json={"code": "1"})
    assert again.json()["status"] == "ok"
    forever = await anne.post(API, json={"id": "forever", "idle_timeout": 1e300})
    assert forever.status_code == 201 and forever.json()["expires_at"].startswith("9999-12-31")
    assert (await anne.get(API)).status_code == 200
    for wrong in ("0", "-1", "1e999", '"soon"', "true"):
        body = f'{{"idle_timeout": {wrong}}}'
        kind = {"Content-Type": "application/json"}
        refused = await anne.post(API, content=body, headers=kind)
        assert refused.status_code in (400, 422), (wrong, refused.text)
