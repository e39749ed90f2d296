"""The conformance suite, against `divingbell serve --http` with a server of ours behind it.

So it looks at our server, and at all that passes through it.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import real_servers
from tests.surfaces.mcp.serving import Serving, fixture, serving, settings

SUITE_TIMEOUT = 170
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
KNOWN_FAILURES: dict[str, set[str]] = {"2025-11-25": set(), "2026-07-28": set()}
"""Scored scenarios that fail; docs/mcp.md gives the reason for each."""
UNSCORED_FAILURES: dict[str, set[str]] = {
    "2025-11-25": set(),
    "2026-07-28": {
        # The extension for tasks: the SDK no longer has it, and it is optional.
        "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
        "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
        "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
    },
}  # fmt: skip


KNOWN_WARNINGS = {"server-sse-priming-event", "server-sse-retry-field"}
"""Of server-sse-polling, which is not scored: streams that broke off can't be resumed."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Serving]:
    folder = tmp_path_factory.mktemp("conformance")
    file = settings(folder, {"suite": fixture("conformance", direct=["*"])}, "hybrid")
    async with serving("--config", str(file), "--no-token") as server:
        yield server


@pytest.mark.parametrize("revision", SCORED)
async def test_every_scored_scenario_passes(revision: str, server: Serving, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command, arguments = real_servers.conformance(
        "server", "--url", server.url, "--requirements", revision, "-o", str(results)
    )
    suite = await asyncio.create_subprocess_exec(
        command, *arguments, cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SUITE_TIMEOUT):
            output = (await suite.communicate())[0].decode()
    finally:
        if suite.returncode is None:
            suite.kill()
            await suite.wait()
    passed, failed, unscored = _read(output)
    assert len((passed | failed) - unscored) == SCORED[revision], output
    assert failed - unscored == KNOWN_FAILURES[revision], _told(results, "FAILURE")
    assert failed & unscored == UNSCORED_FAILURES[revision], _told(results, "FAILURE")
    warned = {line.split(": ")[1] for line in _told(results, "WARNING").splitlines()}
    assert warned <= KNOWN_WARNINGS


def _read(output: str) -> tuple[set[str], set[str], set[str]]:
    """Return the scenarios that passed, those that failed, and those that do not count."""
    summary = output.partition("=== SUMMARY ===")[2]
    passed = set(re.findall(r"^✓ ([\w-]+):", summary, re.MULTILINE))
    failed = set(re.findall(r"^✗ ([\w-]+):", summary, re.MULTILINE))
    unscored = set(re.findall(r"^  [✓✗] ([\w-]+) \(", summary, re.MULTILINE))
    return passed, failed, unscored


def _told(results: Path, status: str) -> str:
    lines = []
    for path in sorted(results.rglob("checks.json")):
        for check in json.loads(path.read_text()):
            if check["status"] == status:
                lines.append(f"{path.parent.name}: {check['id']}: {check.get('errorMessage')}")
    return "\n".join(lines)


def test_what_is_not_passed_is_in_the_docs() -> None:
    page = (real_servers.ROOT / "docs/mcp.md").read_text()
    for failures in (*KNOWN_FAILURES.values(), *UNSCORED_FAILURES.values()):
        for name in failures:
            assert f"`{name}`" in page or ("tasks-" in name and "`tasks-*`" in page)
