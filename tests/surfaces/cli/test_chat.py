"""`divingbell chat` for programs and scripts: real processes, and a real server for the model."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from divingbell.surfaces.cli import exit_status
from tests.agent.provider_server import ProviderServer, Say, serving_beside, status
from tests.datasets import making

from .command import Bell, runner

EMAIL = "anna.bell@example.com"


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    with serving_beside() as server:
        yield server


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return runner(tmp_path)


def asked(
    bell: Bell, provider: ProviderServer, *more: str, stdin: str = ""
) -> tuple[str, str, int]:
    """Ask; return stdout, stderr and the status."""
    done: subprocess.CompletedProcess[str] = bell("chat", *to(provider), *more, stdin=stdin)
    return done.stdout, done.stderr, done.returncode


def to(provider: ProviderServer) -> list[str]:
    provider.bodies.clear()
    provider.headers.clear()
    return ["--model", "openai-chat:local", "--base-url", f"{provider.url}/v1"]


def test_one_question_prints_the_answer_and_nothing_else(
    bell: Bell, provider: ProviderServer
) -> None:
    busy = status(429, "{}", **{"retry-after-ms": "10"})
    provider.says = [busy, Say("Adding.", "print(6 * 7)"), Say("It is **42**.")]
    stdout, stderr, code = asked(bell, provider, "-p", "6 * 7?")
    assert (stdout, code) == ("It is **42**.\n", exit_status.OK)
    assert "too many requests; asking again in 1 s\n" in stderr
    assert "2 requests, 100 tokens read, 24 written" in stderr


# One conversation, and all that it shows of itself


@dataclass(frozen=True)
class Asked:
    """What a program read, and what the model did."""

    told: dict[str, Any]
    status: int
    requests: list[str]
    """The last message of each."""
    headers: str

    def output(self, cell: int) -> str:
        found: str = self.told["cells"][cell]["output"]
        return found


@pytest.fixture(scope="module")
def asking(provider: ProviderServer, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """A question with files, folders, piped input, keys around it, and a cell that fails."""
    place = tmp_path_factory.mktemp("asking")
    (place / "one.csv").write_text("a\n1\n")
    for name, file in (("sales", "march.csv"), ("more", "may.csv"), ("closed", "inner/a.csv")):
        path = place / name / file
        path.parent.mkdir(parents=True)
        path.write_text("b\n2\n")
        (place / name).chmod(0o755)
    (place / "closed" / ".hidden").write_text("secret")
    (place / "closed").chmod(0o700)
    place.chmod(0o755)
    place.parent.chmod(0o755)
    provider.says = [
        Say("", "print(open('stdin.txt').read().count('x'))"),
        Say("", f"print({EMAIL!r})"),
        Say("", "print(open('one.csv').read(), open('/data/sales/march.csv').read())"),
        Say("", "print('a')\n1/0"),
        Say("", "print(open('closed/inner/a.csv').read())"),
        Say("It failed."),
    ]
    done = runner(place)(
        *("chat", *to(provider), "one.csv", "sales", "more", "closed"),
        *("-p", f"Write to {EMAIL}", "--json"),
        stdin="xyx\n" * 50_000,
        OPENAI_API_KEY="sk-of-openai",
        MINE="sk-of-mine",
    )
    bodies = [json.loads(body)["messages"][-1]["content"] for body in provider.bodies]
    return Asked(json.loads(done.stdout), done.returncode, bodies, str(provider.headers))


def test_json_is_one_object_with_the_cells(asking: Asked) -> None:
    told = asking.told
    assert (told["answer"], told["reason"], told["requests"]) == ("It failed.", "answered", 6)
    assert asking.status == exit_status.OK
    cell = told["cells"][3]
    assert cell["code"] == "print('a')\n1/0"
    assert (cell["status"], cell["output"]) == ("error", "a\n")
    assert cell["error"] == "ZeroDivisionError: division by zero"


def test_personal_data_reaches_neither_the_model_nor_a_program(asking: Asked) -> None:
    assert EMAIL not in asking.output(1)
    for said in (asking.requests[0], asking.requests[2]):
        assert EMAIL not in said and "[EMAIL_" in said


def test_with_reveal_a_program_reads_real_values_and_the_key_that_is_named_is_sent(
    bell: Bell, provider: ProviderServer
) -> None:
    provider.says = [Say("", f"print({EMAIL!r})"), Say("Done.")]
    more = ("-p", "Write", "--json", "--reveal", "--key-variable", "MINE")
    done = bell("chat", *to(provider), *more, OPENAI_API_KEY="sk-of-openai", MINE="sk-of-mine")
    assert json.loads(done.stdout)["cells"][0]["output"] == f"{EMAIL}\n"
    assert provider.headers[0]["authorization"] == "Bearer sk-of-mine"


def test_piped_input_is_a_file_for_the_code(asking: Asked) -> None:
    assert asking.output(0) == "100000\n"
    assert "/workspace/stdin.txt" in asking.requests[0]


def test_files_and_folders_are_there_and_the_model_is_told(asking: Asked) -> None:
    assert asking.output(2) == "a\n1\n b\n2\n\n"
    told = asking.requests[0]
    assert "/workspace/one.csv (4B)" in told
    assert "/data/sales, read-only: march.csv (4B); its tables are in servers.data" in told
    assert "/data/more, read-only: may.csv (4B); its tables are in servers.data_more" in told
    assert "datasets:\n  servers.data: march (csv, 4 bytes)\n  servers.data_more: may (" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="only sessions of root have a uid of their own")
def test_a_folder_that_code_can_not_read_is_copied_and_that_is_said(asking: Asked) -> None:
    told = asking.requests[0]
    assert "a copy, since code could not read the folder itself" in told
    assert "/workspace/closed/inner/a.csv: 4 bytes" in told
    assert asking.output(4) == "b\n2\n\n"
    assert ".hidden" not in told
    assert "data_closed" not in told


def test_a_key_of_the_environment_is_not_sent_to_an_address_of_ones_own(asking: Asked) -> None:
    assert "sk-of" not in asking.headers


def test_the_ledger_has_what_the_provider_counts_beside_what_we_count(
    bell: Bell, provider: ProviderServer, tmp_path: Path
) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "orders.csv").write_text("id\n1\n2\n3\n")
    making.readable(folder)
    code = "from servers.data import import_dataset\nprint(len(import_dataset('orders')))"
    provider.says = [Say("", code), Say("Three.")]
    done = bell("chat", *to(provider), str(folder), "-p", "how many?", **data)
    assert done.stdout == "Three.\n", done.stderr
    found = json.loads(bell("stats", "--json", **data).stdout)
    sums = found["answers"]["openai-chat:local"]
    assert (sums["answers"], sums["answered"], sums["turns"]) == (1, 1, 2)
    assert (sums["input_tokens"], sums["output_tokens"]) == (100, 24)
    assert sums["counted_tokens"] > 1_000, "both requests, the instructions in each"
    total = found["total"]
    assert (total["executions"], total["calls"]) == (1, 1)
    assert total["overhead_tokens"] > 400, "what the model is told of the session"
    assert total["direct_definition_tokens"] > 300, "it was spared the tools of the tables"
    shown = " ".join(bell("stats", **data).stdout.split())
    assert "model answers requests tokens read cached we count written US $" in shown
    assert f"openai-chat:local 1 2 100 0 {sums['counted_tokens']:,} 24 –" in shown
    assert "No model has run code" not in shown


def test_failures_of_the_provider_have_an_exit_status(bell: Bell, provider: ProviderServer) -> None:
    provider.says = [status(401, '{"error": {"message": "bad key"}}')]
    stdout, stderr, code = asked(bell, provider, "-p", "hello", "--json")
    assert code == exit_status.MODEL
    told = json.loads(stdout)
    assert (told["reason"], told["answer"]) == ("failed", "")
    assert told["error"]["message"] in stderr
    assert told["error"]["kind"] == "key"


def test_a_reply_that_is_cut_is_not_run_and_has_an_exit_status(
    bell: Bell, provider: ProviderServer
) -> None:
    provider.says = [Say("", "print('half of it')", ends=False)]
    stdout, _, code = asked(bell, provider, "-p", "hello", "--json")
    assert code == exit_status.MODEL
    assert json.loads(stdout)["cells"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "No model is set up yet"),
        (["--model", "nobody:x", "-p", "hello"], "names no provider"),
        (["-p", " "], "the question is empty"),
        (["--model", "anthropic:claude-sonnet-5"], "export ANTHROPIC_API_KEY=…"),
        (
            ["--model", "openai-chat:x", "--base-url", "http://h/v1", "--resume", "nothing"],
            "there is no conversation 'nothing'",
        ),
        (["--json"], "--json needs a question"),
        (["--demo", "-p", "x"], "exclude each other"),
        (["--demo", "--resume"], "--resume is for conversations that are kept"),
        (["nothing-there.csv"], "there is no file or folder"),
        (["--model", "openai-chat:x", "--base-url", "http://127.0.0.1:1/v1"], "no terminal"),
        (["--model", "openai-chat:x", "--base-url", "ftp://x"], "begins with http:"),
    ],
)
def test_what_can_not_be_done_is_refused_in_words(
    bell: Bell, arguments: list[str], words: str
) -> None:
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"), "")
    done = bell("chat", *arguments, **keys)
    assert done.returncode == exit_status.USAGE
    assert words in done.stderr


def test_a_key_that_was_stored_as_the_page_says_is_sent(
    bell: Bell, provider: ProviderServer, tmp_path: Path
) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path)}
    program = Path(sys.executable).with_name("keyring")
    stored = bell("set", "divingbell", "OUR_KEY", program=program, stdin="from-the-keyring", **data)
    assert stored.returncode == 0, stored.stderr
    provider.says = [Say("ok")]
    done = bell("chat", *to(provider), "--key-variable", "OUR_KEY", "-p", "hello", **data)
    assert done.returncode == exit_status.OK, done.stderr
    assert provider.headers[0]["authorization"] == "Bearer from-the-keyring"


def test_the_demo_runs_its_code(bell: Bell) -> None:
    done = bell("chat", "--demo")
    assert done.returncode == exit_status.OK, done.stderr
    assert "2026-02    691.0" in done.stdout  # what the recorded words say, computed now
    assert "Sales were best in **February**, with 691.00" in done.stdout
    assert "ada.wong@example.com" not in done.stdout
    assert "there is no network in the sandbox" in done.stderr


def test_what_takes_long_is_told_to_whoever_waits(bell: Bell, tmp_path: Path) -> None:
    away = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "uv")}
    done = bell("chat", "--demo", DIVINGBELL_HOME=str(tmp_path / "home"), **away)
    assert done.returncode == exit_status.UNAVAILABLE
    assert re.search("· preparing the profile .*, once …\n", done.stderr)
    assert "can't be installed" in done.stderr
