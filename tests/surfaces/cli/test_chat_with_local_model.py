"""`divingbell chat` with a real model, which runs on this machine.

It has 135 million parameters: it writes code, and what it says of it is seldom right. So these
tests look at what was run, and never at whether it is true.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import real_servers

from .command import Bell, runner

SERVER = Path(__file__).parents[2] / "agent" / "local_model_server.py"
SETTINGS = """
[agent]
call_tools = false
window = 4096
turns = 2
"""
QUESTIONS = (
    "Use Python to add the numbers from 0 to 100",
    "Use Python to print the squares of the numbers from 1 to 10",
    "Write Python code that prints the first 10 even numbers",
)
"""Processors round differently, and so it may say something else elsewhere: one of them will do."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the model."""
    python = real_servers.framework_python("local-model")
    with subprocess.Popen(
        [python, SERVER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    (tmp_path / "settings.toml").write_text(SETTINGS)
    return runner(tmp_path)


def asked(bell: Bell, address: str, question: str) -> dict[str, Any]:
    model = ("--model", "openai-chat:smollm2", "--base-url", f"{address}/v1")
    done = bell("chat", "--config", "settings.toml", *model, "-p", question, "--json")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_fences_that_a_real_model_writes_are_run(bell: Bell, address: str) -> None:
    for question in QUESTIONS:
        told = asked(bell, address, question)
        assert told["error"] is None, told
        if told["cells"]:
            break
    else:
        pytest.fail(f"it has written no code to any of them; the last answer: {told['answer']}")
    assert {cell["status"] for cell in told["cells"]} <= {"ok", "error"}
    assert told["requests"] == 2, "it has read what its code has printed"
    assert told["usage"]["input_tokens"] > 0 and told["usage"]["output_tokens"] > 0
