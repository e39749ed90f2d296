"""Refusals: each has a code that is known, and is counted by it."""

import re
from pathlib import Path

import pytest
import websockets

from divingbell import Divingbell
from divingbell.journal.metrics import _codes
from divingbell.surfaces import http
from tests.surfaces.http.serving import served

USED = re.compile(r'Refused\(\s*\d{3},\s*"(\w+)"')


def test_every_code_is_known() -> None:
    files = Path(http.__file__).parent.rglob("*.py")
    used = {code for file in files for code in USED.findall(file.read_text("utf-8"))}
    assert "wrong_host" in used and used <= _codes()


async def test_errors_of_every_surface_are_counted_by_their_code() -> None:
    async with (
        Divingbell(pool=0, metrics="on") as bell,
        served(bell) as site,
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
        found = (await anne.get("/metrics")).text
    counted = re.findall(r'divingbell_errors_total\{code="(\w+)"\} (\d+)', found)
    assert {code: int(number) for code, number in counted if number != "0"} == {
        "not_found": 4, "unauthorized": 2, "wrong_host": 1, "skill_missing": 1,
    }  # fmt: skip
