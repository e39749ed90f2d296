"""Secrets in what servers say."""

import base64
import json
import logging
from urllib.parse import quote, quote_plus

import pytest

from divingbell.gateway.redaction import Redactor, guard_logs

SECRET = 'p4ss "word" ü/+&=?'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        SECRET.encode().hex(),
    ],
)
def test_a_secret_is_found_as_it_is_and_as_it_is_written_elsewhere(form: str) -> None:
    cleaned = Redactor([SECRET], "bank").clean(f"before {form} after")
    assert cleaned == "before [secret of bank] after"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "!", "!!"])
def test_a_secret_is_found_within_base64(before: str, after: str) -> None:
    redactor = Redactor(["correct-horse-battery"], "bank")
    data = (before + "correct-horse-battery" + after).encode()
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        cleaned = redactor.clean(encoded.decode())
        assert "[secret of bank]" in cleaned
        assert b"horse" not in base64.b64decode(cleaned.partition("[")[0] + "==")


def test_values_are_cleaned_in_all_places() -> None:
    redactor = Redactor(["abcdef"], "bank")
    value = {"a": ["xabcdefx", {"abcdef": 1}, None, True, 1.5], "b": ("abcdef",)}
    mark = "[secret of bank]"
    assert redactor.clean_value(value) == {
        "a": [f"x{mark}x", {mark: 1}, None, True, 1.5],
        "b": [mark],
    }


def test_a_longer_secret_goes_before_one_that_is_part_of_it() -> None:
    redactor = Redactor(["abcdef", "abcdefghi"], "bank")
    assert redactor.clean("abcdefghi abcdef") == "[secret of bank] [secret of bank]"


def test_short_values_and_no_values_change_nothing() -> None:
    redactor = Redactor(["", "yes", "12345"])
    assert not redactor
    assert redactor.clean("yes 12345") == "yes 12345"
    value = {"a": 1}
    assert redactor.clean_value(value) is value


def test_a_secret_can_be_learnt_later() -> None:
    redactor = Redactor([], "bank")
    redactor.learn("fresh-token", None)
    assert redactor.clean("the fresh-token") == "the [secret of bank]"
    assert "fresh-token" not in repr(redactor)


def test_a_value_without_a_bottom_does_not_overflow() -> None:
    value: list[object] = []
    for _ in range(10_000):
        value = [value]
    Redactor(["abcdef"]).clean_value(value)


def test_what_the_sdk_logs_is_cleaned(caplog: pytest.LogCaptureFixture) -> None:
    redactor = Redactor(["log-secret"], "bank")
    guard_logs()
    guard_logs()
    logger = logging.getLogger("mcp.client.streamable_http")
    try:
        raise ValueError("a body with log-secret in it")
    except ValueError:
        logger.exception("Error parsing %s", "log-secret")
    assert "Error parsing [secret of bank] (ValueError)" in caplog.text
    assert "log-secret" not in caplog.text
    assert redactor
