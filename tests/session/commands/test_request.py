"""What can't be given to a session as a command is refused with a sentence that says why."""

import json
from typing import Any

import pytest

from divingbell import InvalidInput
from divingbell.session.commands.request import MAX_INPUT, MAX_WORD, MAX_WORDS, requested, text_of

REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("", {}, "the command is empty"),
    (" \n", {}, "the command is empty"),
    ("a\0b", {}, "NUL"),
    ("\ud800", {}, "not valid text"),
    ("x" * (MAX_WORD + 1), {}, "put a long script into a file"),
    (None, {}, "a text or a list of words, not NoneType"),
    (b"ls", {}, "a text or a list of words, not bytes"),
    ({"a": 1}, {}, "not dict"),
    ([], {}, "the list of words is empty"),
    ([""], {}, "the list of words is empty"),
    (["ls", 1], {}, "the word must be text, not int"),
    (["ls", "a\0"], {}, "NUL"),
    (["x" * 100_000] * (MAX_WORDS // 100_000 + 1), {}, "the words and the environment"),
    ("ls", {"cwd": 3}, "the cwd must be text"),
    ("ls", {"cwd": "a\0"}, "NUL"),
    ("ls", {"env": [("a", "b")]}, "env must be a mapping"),
    ("ls", {"env": {"": "x"}}, "can't be the name of a variable"),
    ("ls", {"env": {"A=B": "x"}}, "can't be the name of a variable"),
    ("ls", {"env": {"1A": "x"}}, "can't be the name of a variable"),
    ("ls", {"env": {"A\n": "x"}}, "can't be the name of a variable"),
    ("ls", {"env": {1: "x"}}, "can't be the name of a variable"),
    ("ls", {"env": {"A": 1}}, "the env['A'] must be text"),
    ("ls", {"env": {"A": "\0"}}, "NUL"),
    ("ls", {"timeout": 0}, "more than 0 seconds"),
    ("ls", {"timeout": float("nan")}, "more than 0 seconds"),
    ("ls", {"timeout": True}, "more than 0 seconds"),
    ("ls", {"timeout": "1"}, "more than 0 seconds"),
    ("ls", {"input": 3}, "input must be text or bytes"),
    ("ls", {"input": "\ud800"}, "not valid text"),
    ("ls", {"input": bytes(MAX_INPUT + 1)}, "put it into a file"),
    ("ls", {"shell": True}, "no option 'shell': there are cwd, env, timeout, input"),
]


@pytest.mark.parametrize(("command", "options", "words"), REFUSED)
def test_it_is_refused(command: Any, options: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        requested(command, options, {})
    assert words in str(caught.value)


def test_the_environment_of_the_session_stands_below_that_of_the_command() -> None:
    request = requested("ls", {"env": {"A": "own"}}, {"A": "session", "B": "session"})
    assert json.loads(request.words)["env"] == {"A": "own", "B": "session"}


def test_a_command_as_text() -> None:
    assert text_of("ls  -l") == "ls  -l"
    assert text_of(["ls", "a b"]) == "ls 'a b'"
