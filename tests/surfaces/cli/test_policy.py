"""`divingbell policy explain`: what it prints, for people and for programs."""

import json
import re
from pathlib import Path

import pytest

from divingbell.surfaces.cli import exit_status

from .command import Bell, runner

PAGE = (Path(__file__).parents[3] / "docs/policy.md").read_text("utf-8")
FLOWS = PAGE.split("## Where data may flow")[1]
TABLES, KINDS, *_ = re.findall(r"```toml\n(.*?)```", FLOWS, re.DOTALL)
SERVER = '[servers.slack]\ncommand = "/nonexistent/starts-no-server"\n'


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    (tmp_path / "rules.toml").write_text(TABLES)
    (tmp_path / "kinds.toml").write_text(KINDS)
    (tmp_path / "more.toml").write_text(
        f"{TABLES}{SERVER}[policy.bound]\n"
        '"slack.*.sender" = "{user}"\n'
        '[[policy.rules]]\ntools = "slack.*"\naction = "ask"\nwhen = { to = "!team" }\n'
        'reason = "\\u001b[2Jlook"\n'
    )
    run = runner(tmp_path)

    def explain(*words: str, config: str = "more.toml", **more: str):  # type: ignore[no-untyped-def]
        return run("policy", "explain", *words, "--config", config, **more)

    return explain


def test_the_page_shows_what_is_printed(bell: Bell) -> None:
    commands = re.findall(r"```sh\ndivingbell policy explain (.*)\n```", FLOWS)
    shown = re.findall(r"```text\n(.*?)```", FLOWS, re.DOTALL)
    files = ("rules.toml", "kinds.toml")
    done = [bell(*words.split(), config=file) for words, file in zip(commands, files, strict=True)]
    assert [each.stdout for each in done] == shown
    assert [each.returncode for each in done] == [exit_status.FAILED, exit_status.OK]


def test_a_rule_about_kinds_says_what_it_is_about(bell: Bell) -> None:
    done = bell("crm.find", config="kinds.toml")
    assert (
        "  · with email, secrets out of its results, whatever code does with them, * (not crm.*) "
        "is denied, by flow rule 1"
    ) in done.stdout
    found = json.loads(
        bell("slack.post", "--after", "crm.find", "--json", config="kinds.toml").stdout
    )
    assert found["action"] == "allow"
    assert found["flows"][0]["kinds"] == ["email", "secrets"]
    assert found["flows"][0]["set_off_by"] == []


def test_rules_arguments_and_flows_are_named_and_no_server_is_started(bell: Bell) -> None:
    done = bell("slack.post", "--user", "ann")
    assert done.stdout.splitlines() == [
        "slack.post, called by ann: it depends on the arguments (give some with --arguments)",
        '  · rule 1: asked about, when to is "!team" (\\x1b[2Jlook)',
        "  · no other rule matches: allowed by default",
        '  · the host sets sender = "ann"',
        "  · flow rule 1: denied once the conversation has called crm.* (not crm.list_*) "
        "(customers stay in the CRM)",
        "  · flow rule 2: asked about once the conversation has called host.*",
    ]
    assert done.returncode == exit_status.OK and not done.stderr


def test_what_it_holds_back_is_said_as_well(bell: Bell) -> None:
    done = bell("crm.get_customer")
    assert "  · after it slack.* or fetch.* is denied, by flow rule 1" in done.stdout
    assert done.returncode == exit_status.OK


def test_programs_get_one_object(bell: Bell) -> None:
    done = bell("slack.post", "--arguments", '{"to": "team"}', "--after", "crm.get", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == exit_status.FAILED
    assert (found["action"], found["rule"], found["server_known"]) == ("deny", None, True)
    assert found["flows"][0] == {
        "flow": 1,
        "from": ["crm.*", "!crm.list_*"],
        "to": ["slack.*", "fetch.*"],
        "action": "deny",
        "reason": "customers stay in the CRM",
        "kinds": [],
        "set_off_by": ["crm.get"],
    }
    assert found["flows"][1]["set_off_by"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["slack"], "'slack' is no tool: write its server and its name"),
        (["slack.post", "--after", "crm"], "'crm' is no tool"),
        (["slack.post", "--arguments", "["], "--arguments is no JSON"),
        (["slack.post", "--arguments", "[]"], "--arguments is a JSON object, such as"),
    ],
)
def test_wrong_usage_is_told(bell: Bell, words: list[str], told: str) -> None:
    done = bell(*words)
    assert told in done.stderr and done.returncode == exit_status.USAGE


def test_settings_of_a_folder_that_nobody_trusts_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "divingbell.toml").write_text(TABLES)
    done = runner(tmp_path)("policy", "explain", "slack.post", "--after", "crm.get")
    assert "divingbell trust" in done.stderr and "flow rule" not in done.stdout
    assert done.returncode == exit_status.USAGE
