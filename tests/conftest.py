"""For all: one Divingbell for the whole run, a fresh session for each test, and --quick."""

import atexit
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import hypothesis
import pytest

from divingbell import Divingbell, Session

# How busy the machine is decides nothing.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# What tools and totals leave behind is not the business of whoever runs the tests.
_kept = tempfile.TemporaryDirectory(prefix="divingbell-tests-")
atexit.register(_kept.cleanup)
os.environ["XDG_DATA_HOME"] = _kept.name
for _variable in ("XDG_CONFIG_HOME", "DIVINGBELL_CONFIG", "DIVINGBELL_MCP_CONFIG"):
    os.environ.pop(_variable, None)

SLOW = (
    "bench",
    "datasets/test_server.py",
    "datasets/test_tables_in_code.py",
    "deploy",
    "doctor",
    "gateway/sign_in/test_oauth.py",
    "gateway/test_gateway.py",
    "gateway/upstream/test_hostile_servers.py",
    "gateway/upstream/test_upstream.py",
    "host/test_profile.py",
    "promises",
    "sandbox",
    "scale",
    "session/commands/test_commands.py",
    "session/test_accidents.py",
    "session/test_bad_input.py",
    "session/test_calls.py",
    "session/test_charts.py",
    "session/test_copies.py",
    "session/test_data.py",
    "session/test_engine.py",
    "session/test_files.py",
    "session/test_limits.py",
    "session/test_loop_guard.py",
    "session/test_pool.py",
    "session/test_starting.py",
    "session/test_user_rates.py",
    "session/test_users.py",
    "skills/test_catalogue_over_https.py",
    "skills/test_skills.py",
    "smoke",
    "surfaces/cli/test_chat.py",
    "surfaces/cli/test_chat_at_terminal.py",
    "surfaces/cli/test_chat_with_local_model.py",
    "surfaces/cli/test_app.py",
    "surfaces/cli/test_catalogues.py",
    "surfaces/cli/test_dataset_serving.py",
    "surfaces/cli/test_demo.py",
    "surfaces/cli/test_doctor.py",
    "surfaces/cli/test_greeting.py",
    "surfaces/cli/test_image.py",
    "surfaces/cli/test_running.py",
    "surfaces/cli/test_servers.py",
    "surfaces/cli/test_serving.py",
    "surfaces/cli/test_shell.py",
    "surfaces/cli/test_signing_in.py",
    "surfaces/cli/test_trusting.py",
    "surfaces/cli/test_vault.py",
    "surfaces/http",
    "surfaces/http/console",
    "surfaces/mcp/passthrough/test_passthrough.py",
    "surfaces/mcp/test_border.py",
    "surfaces/mcp/test_conformance.py",
    "surfaces/mcp/test_elsewhere.py",
    "surfaces/mcp/test_every_exit.py",
    "surfaces/mcp/test_http.py",
    "surfaces/mcp/test_inspector.py",
    "surfaces/mcp/test_skills.py",
    "surfaces/mcp/test_starting.py",
    "surfaces/mcp/test_stdio.py",
    "surfaces/mcp/test_told.py",
    "surfaces/mcp/test_users.py",
    "test_clients.py",
    "test_docs.py",
    "test_examples.py",
    "test_quick.py",
    "test_types.py",
    "test_web_example.py",
)
"""Files and folders of tests that --quick leaves out: those that need Docker or gVisor, start
commands or servers of others, wait for limits, or take more than a few seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked slow: half of all, in a tenth of the time",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes long; left out by --quick (tests/conftest.py)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if any(item.path.is_relative_to(here / name) for name in SLOW):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--quick"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=1, copy_after=0.05, interrupt_grace=0.5) as bell:
        yield bell


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session
