"""Rules about flows, as the settings have them."""

from typing import Any

import pytest

from divingbell.errors import ConfigError
from divingbell.settings import tables
from divingbell.settings.config import Settings
from divingbell.settings.flows import MAX_FLOWS, Flow
from divingbell.settings.kinds import KINDS
from divingbell.settings.policy import Policy
from divingbell.settings.privacy import PrivacyRules

RULE: dict[str, Any] = {"from": ["crm.*", "!crm.ping"], "to": "slack.*", "action": "deny"}


def read(**more: Any) -> Flow:
    [flow] = Policy.from_mapping({"flow": [{**RULE, **more}]}, "x.toml").flow
    return flow


def test_a_rule_is_read_by_the_names_of_its_table() -> None:
    flow = read(reason="no", users=["a*"])
    assert flow == Flow(("crm.*", "!crm.ping"), ("slack.*",), "deny", "no", ("a*",))
    assert flow.starts_at("crm.get") and not flow.starts_at("crm.ping")
    assert flow.leads_to("slack.post") and not flow.leads_to("fetch.get")
    assert flow.is_for("ann") and not flow.is_for("ben")


@pytest.mark.parametrize(
    "name", ["CRM.get", "crm", "crm2.get", " crm.get", "x.crm.get", "crm．get"]
)
def test_a_name_is_compared_whole_and_in_its_case(name: str) -> None:
    assert not read().starts_at(name)


@pytest.mark.parametrize("name", ["crm.", "crm.a.b", "crm.ünder\N{SNOWMAN}", "crm.pinG", "crm.\n"])
def test_any_name_of_the_server_is_meant(name: str) -> None:
    assert read().starts_at(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"from": ["crm"]}, r'from: .crm. is no tool: write "crm\.\*"'),
        ({"from": []}, r"from must be a list of patterns"),
        ({"to": [7]}, r"to: 7 is no pattern"),
        ({"action": "allow"}, r'action must be "deny" or "ask", not .allow.'),
        ({"sources": ["crm.*"]}, r"there is no setting .sources.: there are from, to, action"),
        ({"form": ["crm.*"]}, r"did you mean .from.\?"),
    ],
)
def test_a_mistake_is_told_by_the_place_and_the_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=rf"x\.toml, \[policy\.flow\], flow 1.*{words}"):
        read(**change)


@pytest.mark.parametrize("name", ["from", "to", "action"])
def test_what_is_needed_and_missing_is_named(name: str) -> None:
    table = {key: value for key, value in RULE.items() if key != name}
    with pytest.raises(ConfigError, match=f"flow 1 has no '{name}'"):
        Policy.from_mapping({"flow": [table]}, "x.toml")


def test_there_are_so_many_and_no_more() -> None:
    assert len(Policy.from_mapping({"flow": [RULE] * MAX_FLOWS}, "x").flow) == MAX_FLOWS
    with pytest.raises(ConfigError, match="there are 101, and 100 are the most"):
        Policy.from_mapping({"flow": [RULE] * (MAX_FLOWS + 1)}, "x")


def test_one_that_a_program_has_made_is_checked_by_the_same_names() -> None:
    tables.check(Flow(("crm.*",), ("slack.*",), "ask"))
    with pytest.raises(ConfigError, match="from: 'crm' is no tool"):
        tables.check(Flow(("crm",), ("slack.*",), "ask"))


BORDER = {"crm.public": "model", "crm.*": "sandbox", "hr.get.name": "sandbox", "hr.*": "model"}


def settings_with(border: dict[str, Any], **flow: Any) -> Settings:
    policy = Policy.from_mapping({"flow": [{**RULE, **flow}]}, "x.toml")
    rules = PrivacyRules(border=border, patterns={"CUSTOMER": "C-[0-9]+"})
    return Settings(policy=policy, privacy_rules=rules)


def test_kinds_are_words_for_one_or_several() -> None:
    flow = read(kinds=["e-mail", "secrets", "customer"])
    about = [kind for kind in (*KINDS, "CUSTOMER", "VALUE") if flow.is_about(kind)]
    assert about == ["PRIVATE_KEY", "API_KEY", "PASSWORD", "EMAIL", "CUSTOMER"]
    assert flow.words == "email, secrets, customer"
    assert read(kinds="personal").is_about("VALUE") and not read().is_about("EMAIL")


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["crm.find"], ""),
        (["crm.*", "!crm.public"], ""),
        (["crm.*", "!crm.pub*"], ""),
        (["crm.f*", "crm.get"], ""),
        (["crm.*"], 'line "crm.public" = "model"'),
        (["crm.?ublic"], 'line "crm.public" = "model"'),
        (["crm.*", "!crm.publi"], 'line "crm.public" = "model"'),
        (["*"], 'line "crm.public" = "model"'),
        (["!crm.public"], 'of "\\*"'),
        (["hr.get"], 'line "hr.\\*" = "model"'),
        (["shop.*"], 'of "shop.\\*" code gets its real values: write "shop.\\*" = "sandbox" first'),
    ],
)
def test_kinds_are_only_for_what_is_behind_the_border_of_the_sandbox(
    sources: list[str], words: str
) -> None:
    if not words:
        assert settings_with(BORDER, **{"from": sources, "kinds": "email"}).policy.flow
        return
    with pytest.raises(ConfigError, match=rf"\[policy\.flow\], flow 1: a rule with kinds.*{words}"):
        settings_with(BORDER, **{"from": sources, "kinds": "email"})
    assert settings_with(BORDER, **{"from": sources})


@pytest.mark.parametrize("wide", ["crm.?", "crm.[*]", "crm.*a*", "crm.[a-z]*"])
def test_a_pattern_seals_no_more_than_it_plainly_matches(wide: str) -> None:
    with pytest.raises(ConfigError, match="a rule with kinds"):
        settings_with({wide: "sandbox"}, **{"from": "crm.*", "kinds": "email"})
    with pytest.raises(ConfigError, match="a rule with kinds"):
        settings_with({wide: "sandbox"}, **{"from": "crm.[ab]", "kinds": "email"})


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ("emial", "there is no kind 'emial'; did you mean 'email'"),
        ([], "kinds must be a list of kinds"),
        ([7], "7 can't be the name of a kind"),
    ],
)
def test_a_kind_that_there_is_not_is_told(kinds: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_with({"crm.*": "sandbox"}, kinds=kinds)
    assert settings_with({"crm.*": "sandbox"}, kinds=["value", "customer"])
