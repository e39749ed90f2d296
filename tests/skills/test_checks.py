"""What code has to be, to become a skill. None of it is run."""

import pytest

from divingbell.border.border import OpenBorder
from divingbell.errors import SkillRefused
from divingbell.principal import Principal
from divingbell.skills import checks
from divingbell.skills.checks import MAX_CODE, MAX_EXAMPLE

NOBODY = Principal()
GOOD = '''
import json
from servers.crm import orders
RATE = 2

def _scaled(value):
    return value * RATE

def top(limit=3, *, by="sum"):
    """The best ones.

    >>> top(
    ...     2)
    [...]
    """
    global _seen
    _seen = [row for row in orders(limit) if (size := len(row)) and size]
    try:
        return json.dumps([_scaled(each[by]) for each in _seen]), _seen, __name__
    except KeyError as error:
        raise ValueError(by) from error
'''


async def test_code_that_brings_what_it_uses_is_read() -> None:
    reading = await checks.read("top", GOOD, None)
    assert reading.signature == "top(limit=3, *, by='sum')"
    assert reading.example == "top(\n    2)"
    assert reading.docstring.startswith("The best ones.")


async def test_long_code_is_read_as_short_code_is() -> None:
    padded = GOOD + "# and more\n" * 500
    assert len(padded) > checks.AT_ONCE
    assert (await checks.read("top", padded, None)).signature == "top(limit=3, *, by='sum')"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def top(:\n", "the code is no Python: line 1"),
        ("def top():\n    'd'\n    return 1 +\n", "the code is no Python: line 3"),
        ("x = 1\0", "the code "),
        ("(" * 5000, "the code "),
        ("-" * 30_000 + "1", "the code "),
        ("x = " + "1+" * 15_000 + "1", "the code "),
        ("#" * (MAX_CODE + 1), "the code is too long"),
        ("def other():\n    'd'\n", "the code has no function top"),
        ("def top():\n    return 1\n", "top has no docstring"),
        ("def top():\n    '  '\n", "top has no docstring"),
        ("def top():\n    'd'\n    return df.head()\n", "names from outside: df (line 3)"),
        ("class A:\n    x = [y for _ in z]\ndef top():\n    'd'\n", "y (line 2), z (line 2)"),
        ("def top():\n    'd'\n    return search_tools('x')\n", "search_tools (line 3)"),
        ("from math import *\ndef top():\n    'd'\n", "line 1 imports *"),
        ("from . import x\ndef top():\n    'd'\n", "line 1 imports from beside itself"),
        ("def top(a):\n    'd'\n", "there is no example"),
        ("def top():\n    'd'\n    nonlocal x\n", "can't be compiled"),
    ],
)
async def test_other_code_is_refused_and_told_why(code: str, words: str) -> None:
    with pytest.raises(SkillRefused) as caught:
        await checks.read("top", code, None)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("top(", "the example is no Python"),
        ("1 + 1", "the example does not use top"),
        ("#" * (MAX_EXAMPLE + 1), "the example is too long"),
        ("  ", ""),
    ],
)
async def test_an_example_calls_the_function(example: str, words: str) -> None:
    code = "def top():\n    'd'\n"
    if not words:
        assert (await checks.read("top", code, example)).example == "top()"
        return
    with pytest.raises(SkillRefused, match=words):
        await checks.read("top", code, example)


async def test_a_function_without_parameters_is_its_own_example() -> None:
    assert (await checks.read("top", "async def top(*a, k=1):\n    'd'\n", None)).example == (
        "await top()"
    )


async def test_a_module_may_have_other_names_and_a_docstring_of_its_own() -> None:
    code = '"""Numbers."""\none = 1\n'
    reading = await checks.read("numbers_", code, "from skills.numbers_ import one")
    assert reading.signature == "" and reading.docstring == "Numbers."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = 'jane.doe@acme-corp.com'", "line 2 of the code has personal data"),
        ("pay('4111 1111 1111 1111')", "CARD"),
        ("key = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'", "line 1 of the code has personal data or"),
        ("\n\nsend('[EMAIL_482715]')", "line 3 of the code has the token [EMAIL_482715]"),
    ],
)
async def test_personal_data_and_tokens_are_refused_without_privacy(text: str, words: str) -> None:
    with pytest.raises(SkillRefused) as caught:
        await checks.check_privacy({"code": text}, OpenBorder(), NOBODY)
    assert words in str(caught.value) and "make it a parameter" in str(caught.value)


async def test_what_the_conversation_hides_is_refused() -> None:
    class Hiding(OpenBorder):
        async def outward(self, value, principal, reader="model", origin=""):  # type: ignore[no-untyped-def]
            return value.replace("Ottoline", "[NAME_123456]")

    with pytest.raises(SkillRefused, match="line 2 of the code has a value that is hidden"):
        await checks.check_privacy({"code": "x = 1\ny = 'Ottoline'"}, Hiding(), NOBODY)


async def test_ordinary_code_holds_no_personal_data() -> None:
    await checks.check_privacy({"code": GOOD, "description": "The best."}, OpenBorder(), NOBODY)
