"""The choice of what is looked for: by the word of the settings, and by the rules beside it."""

import pytest

from divingbell.border.privacy import engines
from divingbell.border.privacy.choosing import chosen_fields, make_scanner
from divingbell.errors import ConfigError
from divingbell.settings.privacy import Privacy, PrivacyRules

KEY = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
TEXT = f"ann@example.org C-12345678 {KEY}"


@pytest.mark.parametrize(
    ("privacy", "found"),
    [
        ("off", ["CUSTOMER"]),
        ("secrets", ["CUSTOMER", "API_KEY"]),
        ("personal", ["EMAIL", "CUSTOMER", "API_KEY"]),
    ],
)
def test_each_word_adds_to_the_one_before(privacy: Privacy, found: list[str]) -> None:
    rules = PrivacyRules(patterns={"CUSTOMER": "C-[0-9]{8}"})
    assert [find.kind for find in make_scanner(privacy, rules).finds(TEXT)] == found


@pytest.mark.parametrize("made", engines.ENGINES, ids=lambda made: made.__name__)
@pytest.mark.parametrize("wrong", ["(?=x)", "(", "x*", r"(a)\1"])
def test_an_expression_that_can_not_be_used_is_named(
    made: type[engines.Engine], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ENGINES", (made,))
    engines.engine.cache_clear()
    rules = PrivacyRules(patterns={"FINE": "abc", "CUSTOMER": wrong})
    try:
        with pytest.raises(ConfigError, match=r"^\[privacy_rules\]: patterns CUSTOMER: "):
            make_scanner("secrets", rules)
    finally:
        engines.engine.cache_clear()


def test_with_secrets_alone_fields_of_personal_kinds_are_left_out() -> None:
    rules = PrivacyRules(
        patterns={"CUSTOMER": "C-[0-9]{8}"},
        fields={"a.*.x": "NAME", "a.*.y": "CUSTOMER", "a.*.z": "API_KEY"},
    )
    assert chosen_fields("secrets", rules) == {"a.*.y": "CUSTOMER", "a.*.z": "API_KEY"}
    assert chosen_fields("personal", rules) == rules.fields
