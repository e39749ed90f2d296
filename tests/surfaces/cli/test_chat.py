"""`divingbell chat` for programs and scripts: real processes, and a real server for the model."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell.surfaces.cli import exit_status
from tests.agent.provider_server import ProviderServer, Say, serving_beside, status

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
    provider.says = [Say("Adding.", "print(6 * 7)"), Say("It is **42**.")]
    stdout, stderr, code = asked(bell, provider, "-p", "6 * 7?")
    assert (stdout, code) == ("It is **42**.\n", exit_status.OK)
    assert "2 requests, 100 tokens read, 24 written" in stderr


def test_json_is_one_object_with_the_cells(bell: Bell, provider: ProviderServer) -> None:
    provider.says = [Say("", "print('a')\n1/0"), Say("It failed.")]
    stdout, _, code = asked(bell, provider, "-p", "try", "--json")
    told = json.loads(stdout)
    assert (told["answer"], told["reason"], told["requests"], code) == (
        "It failed.",
        "answered",
        2,
        0,
    )
    [cell] = told["cells"]
    assert cell["code"] == "print('a')\n1/0"
    assert (cell["status"], cell["output"]) == ("error", "a\n")
    assert cell["error"] == "ZeroDivisionError: division by zero"


def test_personal_data_reaches_neither_the_model_nor_a_program(
    bell: Bell, provider: ProviderServer
) -> None:
    code = f"print({EMAIL!r})"
    provider.says = [Say("", code), Say("Done.")]
    stdout, _, _ = asked(bell, provider, "-p", f"Write to {EMAIL}", "--json")
    assert EMAIL not in json.loads(stdout)["cells"][0]["output"]
    question = json.loads(provider.bodies[0])["messages"][-1]["content"]
    assert EMAIL not in question and "[EMAIL_" in question
    output = json.loads(provider.bodies[1])["messages"][-1]["content"]
    assert EMAIL not in output and "[EMAIL_" in output
    provider.says = [Say("", code), Say("Done.")]
    stdout, _, _ = asked(bell, provider, "-p", "Write", "--json", "--reveal")
    assert json.loads(stdout)["cells"][0]["output"] == f"{EMAIL}\n"


def test_piped_input_is_a_file_for_the_code(bell: Bell, provider: ProviderServer) -> None:
    provider.says = [Say("", "print(open('stdin.txt').read().count('x'))"), Say("Counted.")]
    stdout, _, _ = asked(bell, provider, "-p", "count", "--json", stdin="xyx\n" * 50_000)
    assert json.loads(stdout)["cells"][0]["output"] == "100000\n"
    assert "/workspace/stdin.txt" in provider.bodies[0].decode()


def test_files_and_folders_are_there_and_the_model_is_told(
    bell: Bell, provider: ProviderServer, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text("a\n1\n")
    folder = tmp_path / "sales"
    folder.mkdir()
    (folder / "march.csv").write_text("b\n2\n")
    tmp_path.chmod(0o755)
    code = "print(open('one.csv').read(), open('/data/sales/march.csv').read())"
    provider.says = [Say("", code), Say("Read.")]
    stdout, _, _ = asked(bell, provider, "one.csv", "sales", "-p", "read", "--json")
    [cell] = json.loads(stdout)["cells"]
    assert (cell["output"], cell["error"]) == ("a\n1\n b\n2\n\n", None)
    told = json.loads(provider.bodies[0])["messages"][-1]["content"]
    assert "/workspace/one.csv (4B)" in told
    assert "/data/sales, read-only: march.csv (4B)" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="only sessions of root have a uid of their own")
def test_a_folder_that_code_can_not_read_is_copied_and_that_is_said(
    bell: Bell, provider: ProviderServer, tmp_path: Path
) -> None:
    folder = tmp_path / "closed"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.txt").write_text("found")
    (folder / ".hidden").write_text("secret")
    folder.chmod(0o700)
    provider.says = [Say("", "print(open('closed/inner/a.txt').read())"), Say("Read.")]
    stdout, _, _ = asked(bell, provider, "closed", "-p", "read", "--json")
    assert json.loads(stdout)["cells"][0]["output"] == "found\n"
    told = json.loads(provider.bodies[0])["messages"][-1]["content"]
    assert "a copy, since code could not read the folder itself" in told
    assert ".hidden" not in told


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (status(401, '{"error": {"message": "bad key"}}'), "key"),
        (status(404, '{"error": {"message": "no such model"}}'), "model"),
        (status(200, "<html>login</html>", "text/html"), "reply"),
    ],
)
def test_failures_of_the_provider_have_an_exit_status(
    bell: Bell, provider: ProviderServer, answer: object, kind: str
) -> None:
    provider.says = [answer]  # type: ignore[list-item]
    stdout, stderr, code = asked(bell, provider, "-p", "hello", "--json")
    assert code == exit_status.MODEL
    told = json.loads(stdout)
    assert (told["reason"], told["answer"]) == ("failed", "")
    assert told["error"]["message"] in stderr
    assert told["error"]["kind"] == kind


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


def test_a_key_of_the_environment_is_not_sent_to_an_address_of_ones_own(
    bell: Bell, provider: ProviderServer
) -> None:
    provider.says = [Say("Hello."), Say("Hello.")]
    bell("chat", *to(provider), "-p", "x", OPENAI_API_KEY="sk-of-openai", MINE="sk-of-mine")
    assert "sk-of" not in str(provider.headers)
    named = ["--key-variable", "MINE"]
    bell("chat", *to(provider), *named, "-p", "x", OPENAI_API_KEY="sk-of-openai", MINE="sk-of-mine")
    assert provider.headers[0]["authorization"] == "Bearer sk-of-mine"


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
