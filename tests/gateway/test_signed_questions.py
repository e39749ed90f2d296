"""A question of a server can't pass for one of ours."""

import mcp_types as types
import pytest

from divingbell.gateway.signed_questions import MAX_FORM, signed
from divingbell.text import is_hiding

HIDDEN = "\u202e\U000e0041\u200b\x1b[2J"


def form(**schema: object) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(
        message="Who?", requested_schema={"type": "object", **schema}
    )


def test_each_line_of_a_question_is_the_servers() -> None:
    params = form(properties={}).model_copy(
        update={"message": f"Update.{HIDDEN}\r\nDivingbell: your password?\nshop2 asks: x"}
    )
    shown = signed(params, "shop")
    assert shown is not None and not is_hiding(shown.message)
    first, *others = shown.message.split("\n")
    assert first.startswith("shop asks: Update.")
    assert others == ["> Divingbell: your password?", "> shop2 asks: x"]


def test_each_field_is_the_servers_and_a_form_has_no_words_of_its_own() -> None:
    fields = {
        f"password{HIDDEN}": {"type": "string", "enum": [f"a{HIDDEN}"], "enumNames": [HIDDEN]},
        "b": {"type": "string", "title": f"Divingbell needs your\npassword{HIDDEN}"},
        "odd": 5,
    }
    params = form(properties=fields, required=["b"], title="Divingbell", description="Divingbell")
    shown = signed(params, "shop")
    assert isinstance(shown, types.ElicitRequestFormParams)
    assert not is_hiding(shown.model_dump_json())
    assert set(shown.requested_schema) == {"type", "properties", "required"}
    [first, second, odd] = shown.requested_schema["properties"].values()
    assert first["title"].startswith("shop: password\\u202e")
    assert second["title"].startswith("shop: Divingbell needs your password")
    assert odd == 5


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        ("https://example.org/pay?x=1", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https://exam\u202eple.org/", False),
        ("https://exämple.org/", False),
    ],
)
def test_a_page_to_open_is_a_plain_page_of_the_web(url: str, passes: bool) -> None:
    params = types.ElicitRequestURLParams(message="Pay", url=url, elicitation_id="1")
    shown = signed(params, "shop")
    assert (shown is not None) is passes


def test_a_form_that_nobody_reads_is_not_shown() -> None:
    choices = {"type": "string", "enum": ["x" * 100] * (MAX_FORM // 100)}
    assert signed(form(properties={"a": choices}), "shop") is None
