"""The input of a cell is bounded, and can be cut into its parts again."""

import json

import pytest

from divingbell import InvalidInput
from divingbell.session import inputs
from divingbell.session.inputs import MAX_CODE, MAX_TOKEN_VALUES, MAX_TOKENS, encoded

TOKEN = "[EMAIL_482715]"


def test_the_parts_are_found_again_by_their_lengths() -> None:
    made = encoded("x = 1", {"a": 2}, None, {TOKEN: "ada@example.com"})
    context, tokens = made.lengths["context"], made.lengths["tokens"]
    assert json.loads(made.body[:context]) == {"a": 2}
    assert json.loads(made.body[context : context + tokens]) == {TOKEN: "ada@example.com"}
    assert made.body[context + tokens :] == b"x = 1"


def test_without_tokens_there_is_nothing_to_send() -> None:
    assert encoded("1 + 1", None, None, {}).body == b"1 + 1"
    assert encoded("1 + 1").lengths == {"context": 0, "tokens": 0}


def test_tokens_are_counted_and_weighed() -> None:
    many = {f"[EMAIL_{number}]": "a" for number in range(100_000, 100_000 + MAX_TOKENS)}
    assert encoded("", token_values=many).tokens
    with pytest.raises(InvalidInput, match="10,001 tokens"):
        encoded("", token_values=many | {TOKEN: "a"})
    room = MAX_TOKEN_VALUES - len(inputs.tokens.to_json({TOKEN: ""}))
    assert len(encoded("", token_values={TOKEN: "a" * room}).tokens) == MAX_TOKEN_VALUES
    with pytest.raises(InvalidInput, match="fewer tokens"):
        encoded("", token_values={TOKEN: "a" * (room + 1)})


def test_tokens_count_with_the_code() -> None:
    code = " " * (MAX_CODE - 10)
    assert encoded(code)
    with pytest.raises(InvalidInput, match="code and context"):
        encoded(code, token_values={TOKEN: "a"})
