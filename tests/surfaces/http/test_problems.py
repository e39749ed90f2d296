"""Refusals: each has a code that is known, and is counted by it."""

import re
from pathlib import Path

import httpx2
import pytest
import websockets

from divingbell import Divingbell
from divingbell.agent.model import Model
from divingbell.errors import ConfigError
from divingbell.journal.metrics import _codes
from divingbell.principal import Principal
from divingbell.surfaces import http
from divingbell.surfaces.http.jupyter.kernels import Kernels
from divingbell.surfaces.http.queue import Queue, Room
from tests.surfaces.http.jupyter.test_kernel import Listening, asking
from tests.surfaces.http.serving import EVENTS, served
from tests.waiting import until

USED = re.compile(r'Refused\(\s*\d{3},\s*"(\w+)"')


def test_every_code_is_known() -> None:
    files = Path(http.__file__).parent.rglob("*.py")
    used = {code for file in files for code in USED.findall(file.read_text("utf-8"))}
    assert "wrong_host" in used and used <= _codes()


async def test_errors_of_every_surface_are_counted_by_their_code() -> None:
    async with (
        Divingbell(pool=0, metrics="on", max_sessions=1) as bell,
        served(bell, make_model=_no_model) as site,
        site.client() as anne,
        site.client(None) as stranger,
    ):
        await anne.get("/api/v1/sessions/nobodys")  # the API
        await anne.get("/jupyter/api/kernels/nobodys")  # Jupyter
        await anne.get("/outputs/nothing/1/0")  # the console
        await anne.get("/nowhere")
        await stranger.get("/api/v1/me")  # the guard
        await stranger.get("/api/v1/me", headers={"Host": "evil.test"})
        await anne.get("/api/v1/skills/none")  # an error of the library
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(f"ws{site.url[4:]}/jupyter/api/kernels/x/channels")
        await _in_streams(anne)
        queue = Queue(Room(at_once=1, waiting_of_user=0))
        queue.enter("local", "his")
        kernels, client = Kernels(bell, queue), Listening()
        [kernel] = kernels.of(Principal("anne", "", "http"))
        with kernel.opened_by(client):
            await kernel.take(asking("1"), client)  # a cell of Jupyter's
            await until(client.replies, "the cell is refused")
        found = (await anne.get("/metrics")).text
    counted = re.findall(r'divingbell_errors_total\{code="(\w+)"\} (\d+)', found)
    assert {code: int(number) for code, number in counted if number != "0"} == {
        "not_found": 4, "unauthorized": 2, "wrong_host": 1, "skill_missing": 1, "capacity": 1,
        "config": 1, "queue_full": 1,
    }  # fmt: skip


async def _no_model() -> Model:
    raise ConfigError("there is no model today")


async def _in_streams(anne: httpx2.AsyncClient) -> None:
    """Have a run fail for which a stream was asked, and an answer whose stream has begun: its
    status is 200 already."""
    path = "/api/v1/sessions/{}/execute"
    assert (await anne.post(path.format("one"), json={"code": "1"})).status_code == 200
    run = await anne.post(path.format("two"), json={"code": "1"}, headers=EVENTS)
    assert run.status_code == 503 and run.json()["code"] == "capacity"
    talk = (await anne.post("/api/v1/conversations", json={"session": "one"})).json()["id"]
    answer = await anne.post(f"/api/v1/conversations/{talk}/messages", json={"text": "Hello?"})
    assert answer.status_code == 200 and "no model today" in answer.text
