"""Without what keeps them, promises about nodes and the line to them are broken."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Output, Result
from divingbell.promises.check.rig import CheckRig
from divingbell.scale import forms, line, node
from divingbell.scale.gateway import told_settings
from tests.promises.breaking import broken

PROBES = Path(__file__).parents[2] / "src/divingbell/promises/probes"


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


async def test_code_that_reaches_the_line_or_ray_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"M01", "M04"}) == set()

    async def unsealed(self: CheckRig, session: Any, probe: str, **context: str) -> Result:
        given = "".join(f"{name} = {value!r}\n" for name, value in context.items())
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", given + (PROBES / probe).read_text()),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        return Result("ok", outputs=(Output("text/plain", out.decode(), "stdout"),))

    monkeypatch.setattr(CheckRig, "run", unsealed)
    assert await broken(own_bell, {"M01", "M04"}) == {"M01", "M04"}


async def test_a_node_that_knows_a_secret_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"M02"}) == set()
    monkeypatch.setattr(node, "settings_of_node", lambda settings: settings)
    assert await broken(own_bell, {"M02"}) == {"M02"}


async def test_a_replica_that_knows_a_secret_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"M05"}) == set()
    face = told_settings._face

    def telling(entry: Any) -> dict[str, Any]:
        return {**face(entry), "env": dict(entry.env)}

    monkeypatch.setattr(told_settings, "_face", telling)
    assert await broken(own_bell, {"M05"}) == {"M05"}


@pytest.mark.parametrize("taken_away", ["weight", "credit", "types"])
async def test_what_a_node_sends_and_nobody_checks_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch, taken_away: str
) -> None:
    from divingbell.promises.check import lines

    monkeypatch.setattr(lines, "PATIENCE", 1.0)
    assert await broken(own_bell, {"M03"}) == set()
    ways: dict[str, Callable[[], None]] = {
        "weight": lambda: monkeypatch.setattr(line, "_check_weight", lambda header: None),
        "credit": lambda: monkeypatch.setattr(line, "SLACK", 1 << 40),
        "types": lambda: monkeypatch.setattr(forms, "_exactly", lambda kind, value: value),
    }
    ways[taken_away]()
    forms._reader.cache_clear()
    try:
        assert await broken(own_bell, {"M03"}) == {"M03"}
    finally:
        forms._reader.cache_clear()
