"""The settings of the audit log."""

from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.settings.audit import AuditLogSettings
from divingbell.settings.config import Settings, load


def test_paths_are_relative_to_the_file_and_sizes_are_words(tmp_path: Path) -> None:
    path = tmp_path / "divingbell.toml"
    path.write_text('audit = "on"\n[audit_log]\nfolder = "log"\nsegment = "2MB"\n')
    found = load(path, environment={})
    assert found.audit == "on"
    assert found.audit_log == AuditLogSettings(str(tmp_path / "log"), segment=2 << 20)


def test_the_word_can_come_from_the_environment_and_the_key_is_no_setting() -> None:
    variables = {"DIVINGBELL_AUDIT": "required", "DIVINGBELL_AUDIT_KEY": "secret"}
    assert load(environment=variables).audit == "required"
    assert Settings().audit is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"audit": "sometimes"}, '"off" or "on" or "required"'),
        ({"audit": {"folder": "x"}}, "audit_log"),
        ({"audit_log": {"segment": 10}}, "1MB or more"),
        ({"audit_log": {"place": "x"}}, "place"),
    ],
)
def test_what_can_not_be_meant_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(overrides=given, environment={})
