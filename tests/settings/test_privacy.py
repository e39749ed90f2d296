"""The settings of privacy: one word, and a table of rules beside it."""

from pathlib import Path

import pytest

from divingbell import ConfigError, Settings
from divingbell.settings import config, kinds
from divingbell.settings.privacy import MOST_OWN, PrivacyRules


def _load(tmp_path: Path, text: str, **environment: str) -> Settings:
    file = tmp_path / "divingbell.toml"
    file.write_text(text)
    return config.load(file, {}, environment)


def test_it_is_one_word_that_no_source_has_to_say(tmp_path: Path) -> None:
    assert _load(tmp_path, "").privacy is None
    assert _load(tmp_path, 'privacy = "personal"').privacy == "personal"
    assert _load(tmp_path, 'privacy = "off"', DIVINGBELL_PRIVACY="secrets").privacy == "secrets"
    assert config.load(None, {"privacy": "off"}, {"DIVINGBELL_PRIVACY": "secrets"}).privacy == "off"


def test_rules_are_read_and_their_kinds_have_the_names_of_tokens(tmp_path: Path) -> None:
    text = """
        privacy = "personal"
        [privacy_rules.patterns]
        customer = "C-[0-9]{8}"
        [privacy_rules.fields]
        "crm.*.name" = "person"
        "crm.get_contact.home.street" = "address"
        "shop.*.number" = "Customer"
        "hr.*.born" = "birth-date"
        [privacy_rules.border]
        "bank.*" = "sandbox"
    """
    rules = _load(tmp_path, text).privacy_rules
    assert rules.patterns == {"CUSTOMER": "C-[0-9]{8}"}
    assert rules.fields == {
        "crm.*.name": "NAME",
        "crm.get_contact.home.street": "ADDRESS",
        "shop.*.number": "CUSTOMER",
        "hr.*.born": "BIRTH_DATE",
    }
    assert rules.border == {"bank.*": "sandbox"}


@pytest.mark.parametrize("word", [*kinds.KINDS, *kinds.OTHER_WORDS])
def test_every_word_for_a_kind_means_one_that_there_is(word: str) -> None:
    for spelt in (word, word.lower(), word.lower().replace("_", "-"), word.replace("_", " ")):
        assert kinds.meant(spelt) in kinds.KINDS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('privacy = "all"', 'privacy must be "off" or "secrets" or "personal" '),
        ('[privacy]\nlevel = "off"', "(and details in the table [privacy_rules]), not {'level'"),
        ("privacy_rules = 5", "[privacy_rules] must be a table"),
        ("[privacy_rules]\nfield = {}", "there is no setting 'field'; did you mean 'fields'?"),
        (
            '[privacy_rules]\nfields = {"a.*.x" = "persn"}',
            "[privacy_rules]: fields a.*.x: there is no kind 'persn'; did you mean 'person'? There "
            "are private_key, api_key,",
        ),
        (
            '[privacy_rules]\nfields = {"a.*.x" = "shoe_size"}',
            "there is no kind 'shoe_size': there are private_key,",
        ),
        ('[privacy_rules]\nfields = {"a.*.x" = 5}', "5 can't be the name of a kind"),
        ('[privacy_rules]\nfields = {"a.*.x" = "x_1"}', "'x_1' can't be the name of a kind"),
        ('[privacy_rules]\nfields = {"crm" = "name"}', "'crm' is no tool: write \"crm.*\""),
        ('[privacy_rules]\nfields = {"!crm.*" = "name"}', "must not begin with !"),
        ('[privacy_rules]\nfields = ["a"]', "fields must be a table of kinds by patterns"),
        ('[privacy_rules]\npatterns = {"a b!" = "x"}', "'a b!' can't be the name of a kind"),
        (
            '[privacy_rules]\npatterns = {X_Y = "a", x-y = "b"}',
            "'X_Y' and 'x-y' mean the same kind: join both with |",
        ),
        ("[privacy_rules]\npatterns = {XY = 5}", "XY must be an expression in the syntax of RE2"),
        ('[privacy_rules]\npatterns = {XY = ""}', "of 1 to 1,000 characters, not ''"),
        ("[privacy_rules]\npatterns = 5", "patterns must be a table of expressions by kind"),
        (
            '[privacy_rules]\nborder = {"a.*" = "cell"}',
            'must be "model" or "sandbox", not \'cell\'',
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_there_are_only_so_many_expressions(tmp_path: Path) -> None:
    text = "[privacy_rules.patterns]\n" + "".join(f'K{n}X = "x"\n' for n in range(MOST_OWN + 1))
    with pytest.raises(ConfigError, match="with at most 100 names"):
        _load(tmp_path, text)


def test_the_first_pattern_that_matches_a_tool_or_its_field_says_who_does_not_see() -> None:
    rules = PrivacyRules(
        border={"bank.list.owner": "model", "bank.*": "sandbox", "crm.*.ssn": "sandbox"}
    )
    assert rules.border_of("bank.list", "owner") == "model"
    assert rules.border_of("bank.list", "iban") == "sandbox"
    assert rules.border_of("bank.list") == "sandbox"
    assert rules.border_of("crm.get") == "model"
    assert rules.border_of("crm.get", "ssn") == "sandbox"
    assert rules.border_of("crm.get", "person.ssn") == "sandbox"
