"""The API keeps to its description, whatever is asked: schemathesis, over a real server."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell
from tests import real_servers
from tests.surfaces.http.serving import ANNE, Site, Talking, served

PATIENCE = 300.0
EXAMPLES = 4
"""Of each operation and phase."""
CONFIG = """
hooks = "contract_hooks"

# 400 is for what does not fit the description, 422 for what fits and can't be done.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429, 503]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 429, 503]
"""


@pytest.fixture(scope="module")
async def site(bell: Divingbell) -> AsyncIterator[Site]:
    async with served(bell, make_model=Talking().made) as site:
        yield site
    await bell.owned.leave_all()


async def test_every_operation_answers_as_it_is_described(site: Site, tmp_path: Path) -> None:
    program = Path(real_servers.framework_python("contract")).with_name("schemathesis")
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    process = await asyncio.create_subprocess_exec(
        str(program), "--no-color", "run", f"{site.url}/openapi.json",
        "--header", f"Authorization: Bearer {ANNE}",
        "--exclude-path", "/api/v1/events",  # it never ends; its tests read it
        "--max-examples", str(EXAMPLES),
        "--generation-deterministic", "--request-timeout", "20", "--workers", "1",
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE):
        told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
