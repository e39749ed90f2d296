"""Lines of [privacy_rules] that are about nothing are told of, once their server is known."""

import pytest

from divingbell import Divingbell
from divingbell.gateway.policy.privacy_lines import MOST_TOLD, PrivacyLines
from divingbell.settings.privacy import PrivacyRules

TOOLS = ["crm.get_contact", "crm.find", "crm.a.b"]


def lines(*fields: str, **border: str) -> PrivacyLines:
    rules = PrivacyRules(fields=dict.fromkeys(fields, "NAME"))
    return PrivacyLines(rules, lambda server: TOOLS if server == "crm" else [])


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for record in caplog.records if "about nothing" in (text := record.getMessage())]


@pytest.mark.parametrize(
    "right",
    [
        "crm.*", "crm.*.name", "crm.get_contact", "crm.get_contact.home.street", "crm.get_*.name",
        "crm.find*", "crm.a.b.name", "crm.a.*", "*.find.name", "c*.nothing.name", "crm?.x.y",
        "files.people.csv.name", "shown.table.name", "host.later.name", "crm.read_resource.name",
        "crm.f[ij]nd.name",
    ],
)  # fmt: skip
def test_a_line_that_may_be_about_something_is_not_told_of(
    right: str, caplog: pytest.LogCaptureFixture
) -> None:
    known = lines(right)
    known.check_servers(["crm"])
    known.tools_changed("tools", "crm")
    assert warned(caplog) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("crn.find.name", "no server is called 'crn'. Did you mean crm?"),
        ("crm.get_contct.name", "crm has no such tool. Did you mean get_contact?"),
        ("crm.get_contct.*", "crm has no such tool. Did you mean get_contact?"),
        ("crm.get_contacts", "crm has no such tool. Did you mean get_contact?"),
        ("crm.fin.name", "crm has no such tool. Did you mean find?"),
        ("crm.a.c.name", "crm has no such tool."),
    ],
)
def test_a_misspelt_line_is_told_of_once(
    wrong: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    known = lines(wrong, "crm.find.name")
    for _ in range(2):
        known.check_servers(["crm"])
        known.tools_changed("resources", "crm")
        known.tools_changed("tools", "crm")
    [told] = warned(caplog)
    assert f"[privacy_rules.fields]: the line {wrong!r}" in told and said in told


def test_a_server_that_is_down_says_nothing_of_its_tools(caplog: pytest.LogCaptureFixture) -> None:
    known = lines("shop.find.name")
    known.check_servers(["shop"])
    known.tools_changed("tools", "shop")
    assert warned(caplog) == []


def test_any_number_of_lines_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    lines(*(f"crn.tool{number}.name" for number in range(100))).check_servers(["crm"])
    assert len(warned(caplog)) == MOST_TOLD + 1


async def test_a_divingbell_tells_of_them(caplog: pytest.LogCaptureFixture) -> None:
    def find() -> str:
        return ""

    rules = {"border": {"host.fnd": "sandbox"}, "fields": {"crm.find.name": "person"}}
    for privacy in ("off", "personal"):
        async with Divingbell(privacy=privacy, privacy_rules=rules, tools=[find]):
            pass
        assert len(warned(caplog)) == (2 if privacy == "personal" else 0)
    assert "[privacy_rules.border]: the line 'host.fnd'" in warned(caplog)[0]
