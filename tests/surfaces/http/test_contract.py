"""The API keeps to its description, whatever is asked: schemathesis, over a real server."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.http.api import events
from divingbell.surfaces.http.application import OPERATIONS
from divingbell.surfaces.http.event_log import Entry
from divingbell.surfaces.http.openapi import description
from divingbell.surfaces.http.operations import BASE
from tests import real_servers
from tests.skills.samples import made
from tests.surfaces.http.serving import ANNE, Site, Talking, served
from tests.waiting import until

PATIENCE = 600.0
EXAMPLES, SEQUENCES, MOST_RUNS = 4, 100, 8
"""Of each operation and phase; and sequences of operations that lead to each other, in so many
runs at most."""
LINKS = sum(
    len(answer.get("links", ()))
    for path in description(OPERATIONS)["paths"].values()
    for operation in path.values()
    for answer in operation["responses"].values()
)
SHARE_OF_LINKS = 0.5
"""Of those that the description has, so many are followed at least: which ones is chance."""
BY_THEIR_OWN_TESTS = {
    "DELETE /api/v1/sessions/{id}/files/{path}",
    "GET /api/v1/mcp/tools/{server}/{tool}",
    "POST /api/v1/conversations/{id}/answer",
    "POST /api/v1/reveal",
}
"""They are asked for, and not done: they take a name to which no answer leads, or, of a file, one
that must have been stored just before."""
MOST_SESSIONS, SKILLS = 20, 12
CONFIG = f"""
hooks = "contract_hooks"

[phases.stateful]
max-steps = 8
generation.max-examples = {SEQUENCES}
generation.mode = "positive"

# Ours alone: what could be guessed besides is a name that is the same by chance.
[phases.stateful.inference]
algorithms = []

# An execution that was cancelled is still there, with its result; and a session of a name that was
# ended is opened again by whoever runs something in it.
[[operations]]
include-path-regex = "/api/v1/(executions|sessions)/.*"
checks.use_after_free.enabled = false

# It is the question that is not there, and no answer names one.
[[operations]]
include-path = "/api/v1/conversations/{{id}}/answer"
checks.ensure_resource_availability.enabled = false

# 400 is for what does not fit the description, 422 for what fits and can't be done.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429, 503]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 429, 503]
"""
BUSY = "zz-asking"
QUESTION = 4.0
"""Seconds that a question waits; then its client leaves, and asks again."""
ASKING = "from servers.host import mail\nmail('now')"


def mail(text: str) -> str:
    """Mail somebody."""
    return text


async def _first(watch: events._Watch) -> AsyncGenerator[Entry | None, None]:
    """The beginning of a stream that has no end; its tests read the rest."""
    async with contextlib.aclosing(_followed(watch)) as entries:
        yield await anext(entries)


_followed = events._followed


async def _asking(site: Site) -> None:
    """See to it that a question waits, however often it is answered."""
    async with site.client() as client:
        # What is asked of this session waits for its cell: not for so long that it is given up.
        client.timeout = httpx2.Timeout(QUESTION)
        while True:
            with contextlib.suppress(httpx2.ReadTimeout):
                await client.post(f"/api/v1/sessions/{BUSY}/execute", json={"code": ASKING})
            await asyncio.sleep(0.1)


async def _making_room(site: Site) -> None:
    """See to it that there is room for another session, and that the first one of the list is
    not the one whose cell waits."""
    async with site.client() as client:
        while True:
            await client.post("/api/v1/sessions", json={"id": "0"})
            found = (await client.get("/api/v1/sessions?limit=200")).json()["items"]
            others = [each for each in found if each["id"] != BUSY]
            for each in sorted(others, key=lambda each: each["created_at"])[:-MOST_SESSIONS]:
                await client.delete(f"/api/v1/sessions/{each['id']}")
            await asyncio.sleep(0.2)


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A server with something of every noun."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(events, "_followed", _first)
    async with Divingbell(
        pool=1,
        preload=[],
        interrupt_grace=0.5,
        skills="on",
        audit="on",
        audit_log={"folder": str(tmp_path / "log"), "heads": str(tmp_path / "heads")},
        policy={"rules": [{"tools": ["host.mail"], "action": "ask"}]},
        tools=[mail],
    ) as bell:
        for number in range(SKILLS):  # each can be removed once
            for answer in (1, 2):
                code = f"def run():\n    return {answer}\n"
                await bell.skills.add(made(f"skill-{number}", code), user="anne")
        async with served(bell, make_model=Talking().made) as site:
            beside = [asyncio.create_task(each(site)) for each in (_asking, _making_room)]
            async with site.client() as client:

                async def waits() -> bool:
                    return bool((await client.get("/api/v1/approvals")).json()["items"])

                await until(waits, "a question waits")
            yield site
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
        await bell.owned.leave_all()


async def test_every_operation_answers_as_it_is_described(site: Site, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    report = await _asked(site, tmp_path, "coverage,fuzzing", "1")
    followed = set[str]()
    # A sequence that ends otherwise when it is tried again ends a run; others begin elsewhere.
    done, seed = _done(report), 0
    missing = {f"{each.method} {BASE}{each.path.replace(':path', '')}" for each in OPERATIONS}
    missing -= BY_THEIR_OWN_TESTS
    while len(followed) < SHARE_OF_LINKS * LINKS or not done >= missing:
        seed += 1
        assert seed <= MOST_RUNS, (sorted(followed), sorted(missing - done))
        report = await _asked(site, tmp_path, "stateful", str(seed))
        followed |= _followed_links(report)
        done |= _done(report)


async def _asked(site: Site, folder: Path, phases: str, seed: str) -> Path:
    """Run schemathesis, which must find nothing; return its report."""
    program = Path(real_servers.framework_python("contract")).with_name("schemathesis")
    report = folder / f"{phases}-{seed}.ndjson"
    process = await asyncio.create_subprocess_exec(
        str(program), "--no-color", "run", f"{site.url}/openapi.json",
        "--header", f"Authorization: Bearer {ANNE}",
        "--phases", phases, "--seed", seed, "--max-examples", str(EXAMPLES),
        "--report", "ndjson", "--report-ndjson-path", str(report),
        "--request-timeout", "20", "--workers", "1",
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE):
        told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return report


def _recorders(report: Path) -> Iterator[dict[str, Any]]:
    """What was asked and answered, scenario by scenario."""
    for line in report.read_text().splitlines():
        [(kind, told)] = json.loads(line).items()
        if kind == "ScenarioFinished":
            yield told["recorder"]


def _followed_links(report: Path) -> set[str]:
    """The links by which something was asked for."""
    return {
        case["transition"]["id"]
        for recorder in _recorders(report)
        for case in recorder.get("cases", {}).values()
        if case.get("transition") and case.get("is_transition_applied")
    }


def _done(report: Path) -> set[str]:
    """The operations that were not only asked for, but done, once at least."""
    found = set[str]()
    for recorder in _recorders(report):
        for name, each in recorder.get("interactions", {}).items():
            asked = recorder["cases"][name]["value"]
            if ((each.get("response") or {}).get("status_code") or 500) < 300:
                found.add(f"{asked['method']} {asked['path']}")
    return found
