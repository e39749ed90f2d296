"""Secrets in what servers say."""

import base64
import html
import json
import logging
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest

from divingbell.disguises import MOST
from divingbell.gateway.upstream import redaction
from divingbell.gateway.upstream.redaction import Redactor, guard_logs
from divingbell.text import one_line, visible

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
        SECRET.encode().hex().upper(),
        quote(SECRET, safe="").lower(),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        quote(quote(SECRET, safe=""), safe=""),
        SECRET.replace("/", "%2f"),
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(SECRET))[3:-3],
        "".join(f"\\u{ord(sign):04x}" for sign in SECRET),
        "".join(f"\\u{ord(sign):04X}" for sign in SECRET),
        "".join(f"\\x{ord(sign):02x}" for sign in SECRET),
        html.escape(SECRET),
        html.escape(html.escape(SECRET)),
        "".join(f"&#{ord(sign)};" for sign in SECRET),
        "".join(f"&#x{ord(sign):X};" for sign in SECRET),
        "".join(f"&#00{ord(sign)};" for sign in SECRET),
        SECRET.replace("/", "&sol;").replace("+", "&plus;"),
        f"{SECRET[:5]}\x1b[31m{SECRET[5:9]}\0{SECRET[9:]}",
        SECRET[:3] + quote(SECRET[3:6]) + html.escape(SECRET[6:]),
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


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_the_shortest_secret_is_found_within_base64_too(before: str) -> None:
    encoded = base64.b64encode(f"{before}sixsix!".encode()).decode().rstrip("=")
    assert "[secret of bank]" in Redactor(["sixsix"], "bank").clean(encoded)


def test_base64_and_hex_are_found_in_disguise() -> None:
    redactor = Redactor(["s>?e>?c>?"], "bank")
    encoded = base64.b64encode(b"s>?e>?c>?").decode()
    assert "/" in encoded
    for form in (quote(encoded, safe=""), encoded.replace("/", "\\/")):
        assert redactor.clean(form) == "[secret of bank]"


def test_what_is_no_secret_stays_as_it_is_beside_one_in_disguise() -> None:
    text = 'a%2fb \\/ &amp; \\u0061 {} a%2fb "'
    cleaned = Redactor(["pa/ss word"], "bank").clean(text.format("pa%2Fss%20word"))
    assert cleaned == text.format("[secret of bank]")
    twice = Redactor(["pa/ss word"], "bank").clean("pa%2Fss word pa\\/ss word")
    assert twice == "[secret of bank] [secret of bank]"


def test_a_key_of_several_lines_is_found_line_by_line() -> None:
    lines = [f"{number}line-of-a-private-key" for number in range(3)]
    key = "\n".join(["-----BEGIN KEY-----", *lines, "-----END KEY-----"])
    redactor = Redactor([key], "bank")
    assert redactor.clean(key) == "[secret of bank]"
    assert redactor.clean(f"  {lines[1]},") == "  [secret of bank],"
    assert redactor.clean("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


def test_a_token_chosen_to_slow_the_search_does_not() -> None:
    """It would take minutes if the time grew with the product of both lengths."""
    redactor = Redactor(["a" * 50_000 + "b"], "bank")
    for text in (
        "a" * 500_000,
        "%61" * 200_000,
        "\\" * 500_000,
        "&amp;" * 100_000,
        "%25" * 200_000,
    ):
        assert redactor.clean(text) == text


def test_tokens_that_are_parts_of_the_mark_do_not_make_it_grow() -> None:
    mark = "[secret of bank]"
    redactor = Redactor([mark[start:] for start in range(1, 10)], "bank")
    assert redactor.clean("a secret of bank] b") == f"a {mark} b"


def test_tokens_without_end_are_not_all_kept() -> None:
    redactor = Redactor(["configured"], "bank")
    for number in range(1_000):
        redactor.learn(f"token-{number:06}")
    assert redactor.clean("configured token-000999") == "[secret of bank] [secret of bank]"
    assert repr(redactor) == "Redactor(21 secrets)"


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


def test_a_long_text_is_gone_through_bit_by_bit_and_no_secret_is_missed_at_a_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redactor = Redactor(["correct-horse/battery"], "shop")
    looked_at: list[int] = []
    places = redactor._places

    def counted(text: str, offset: int) -> Iterator[tuple[int, int]]:
        looked_at.append(len(text))
        return places(text, offset)

    monkeypatch.setattr(redactor, "_places", counted)
    monkeypatch.setattr(redaction, "_PIECE", 1000)
    forms = ("correct-horse/battery", "correct-horse%2Fbattery", "&#99;orrect-horse\\/battery")
    for before in range(960, 1040):
        for form in forms:
            text = "%41" * (before // 3) + "x" * (before % 3) + form + "%42" * 1000
            marked = text.replace(form, "[secret of shop]")
            assert redactor.clean(text) == marked
            assert redactor.finds(text) and not redactor.finds(marked)
    assert max(looked_at) <= 1000 + MOST + redactor._longest


LONG = {
    "html": "".join(f"&amp;amp;amp;amp;#{ord(sign):09};" for sign in SECRET),
    "addresses": "".join(f"%25252525{byte:02x}" for byte in SECRET.encode()),
    "json": "".join("\\" * 16 + f"u{ord(sign):04x}" for sign in SECRET),
    "colours": ("\x1b[" + "0;" * 400 + "m").join(SECRET),
    "many colours": ("\x1b[0m" * 2000).join(SECRET),
    "titles": ("\x1b]0;" + "a title " * 500 + "\x07").join(SECRET),
}


@pytest.mark.parametrize("form", LONG.values(), ids=LONG)
def test_no_disguise_is_too_long_for_a_cut(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_PIECE", 1000)
    redactor = Redactor([SECRET], "shop")
    for before in {0, 1, 500, 998, 999, 1000, max(0, 1003 - len(form)), 1000 - len(form) % 1000}:
        text = "x" * before + form + "y" * 3000
        assert redactor.clean(text) == "x" * before + "[secret of shop]" + "y" * 3000


@pytest.mark.parametrize("separator", ["\x1b\nm", "\x1b\x1fm", "\x1b\tm", "\x1b \rm", "\x1b[\n0m"])
@pytest.mark.parametrize("show", [one_line, visible])
def test_what_is_cleaned_does_not_come_together_where_it_is_shown(
    separator: str, show: Callable[[str, int], str]
) -> None:
    said = f"sk-live{separator}-0123456789"
    assert "sk-live-0123" not in show(Redactor(["sk-live-0123456789"]).clean(said), 1000)


def test_a_secret_in_disguise_is_found_within_a_sequence_of_the_terminal() -> None:
    redactor = Redactor(["sk-live-0123456789"], "bank")
    for said in (
        "\x1b]0;%73k-live-0123456789\x07",
        "\x1b]0;%73k-live-0123456789\r\x07",
        "\x1b&#115;k-live-0123456789",
        "\x1b[0\\\\u0073k-live-0123456789",
    ):
        assert "[secret of bank]" in redactor.clean(said)


def test_a_secret_that_is_a_number_is_found_among_numbers() -> None:
    value = {"a": 12345678901, "b": [-12345678901, 12345678901.0, 123, 1.5, True, None]}
    mark = "[secret of bank]"
    cleaned = Redactor(["12345678901"], "bank").clean_value(value)
    assert cleaned == {"a": mark, "b": [mark, mark, 123, 1.5, True, None]}
