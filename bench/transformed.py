"""Ways to write a value otherwise: which of them are seen through, and which get past.

Code in the sandbox may do to a value what it likes before it prints it. What is undone here is what
programs do without meaning to hide anything.
"""

import base64
import codecs
import html
import json
import urllib.parse
from collections.abc import Callable, Iterator

from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen

VALUES = {
    "EMAIL": "marisol.okafor@example.org",
    "PHONE": "+49 151 23456789",
    "CARD": "4111 1111 1111 1111",
    "SSN": "536-22-8726",
    "IBAN": "DE89 3704 0044 0532 0130 00",
    "IP": "84.17.52.9",
    "API_KEY": "ghp_1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz",
    "NAME": "Marisol Okafor",
}
"""One of each; the name is learned, the others are found by their shapes."""
LEARNED = "NAME"


def _everywhere(sign: str) -> Callable[[str], str]:
    return sign.join


def _coded(value: str, form: str) -> str:
    return "".join(form.format(ord(sign)) for sign in value)


def _cut_by_pandas(value: str) -> str:
    """What pandas prints of a cell that is two characters too long."""
    return f"  who\n0  {value[:-5]}{'...' if value else ''}"


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "repr, in a list": lambda value: repr([value]),
    "JSON": lambda value: json.dumps({"x": value}),
    "JSON in JSON": lambda value: json.dumps(json.dumps({"x": value})),
    r"JSON, all escaped (\u0061)": lambda value: _coded(value, r"\u{:04x}"),
    r"Python, all escaped (\x61)": lambda value: _coded(value, r"\x{:02x}"),
    "HTML": html.escape,
    "HTML, all escaped (&#97;)": lambda value: _coded(value, "&#{};"),
    "URL (%40)": urllib.parse.quote,
    "URL, all escaped (%61)": lambda value: _coded(value, "%{:02x}"),
    "form of the web (+ for a space)": urllib.parse.quote_plus,
    "colours of a terminal": lambda value: "\x1b[1m" + value[:6] + "\x1b[0m" + value[6:],
    "zero-width spaces": _everywhere("\u200b"),
    "soft hyphens": _everywhere("\u00ad"),
    "full-width characters": lambda value: "".join(
        chr(ord(sign) + 0xFEE0) if sign != " " else sign for sign in value
    ),
    "no-break spaces": lambda value: value.replace(" ", "\u00a0"),
    "cut by pandas": _cut_by_pandas,
    "over two lines": lambda value: value[:9] + "\n" + value[9:],
    "spaced out": _everywhere(" "),
    "with dots between": _everywhere("."),
    "a character a line": _everywhere("\n"),
    "a list of characters": lambda value: repr(list(value)),
    "numbers of characters": lambda value: repr([ord(sign) for sign in value]),
    "reversed": lambda value: value[::-1],
    "hexadecimal": lambda value: value.encode().hex(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base32": lambda value: base64.b32encode(value.encode()).decode(),
    "rot13": lambda value: codecs.encode(value, "rot13"),
    "words for signs (at, dot)": lambda value: value.replace("@", " at ").replace(".", " dot "),
    "other letters that look alike": lambda value: value.translate(
        str.maketrans("aeopc013", "аеорсО١З")
    ),
}


def seen() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each way, with the kinds that are covered as a whole and those that are not."""
    learned = Learned()
    learned.add([(VALUES[LEARNED], LEARNED)])
    screen = Screen(Scanner(KINDS), learned)
    for way, written in WAYS.items():
        found: dict[bool, list[str]] = {True: [], False: []}
        for kind, value in VALUES.items():
            found[_is_covered(screen, written(value), written(""))].append(kind)
        yield way, found[True], found[False]


def _is_covered(screen: Screen, text: str, of_nothing: str) -> bool:
    """Whether no letter or digit of a value is left: no more of them than without any value."""
    left = text
    for find in reversed(screen.finds(text)):
        left = left[: find.start] + left[find.end :]
    return sum(map(str.isalnum, left)) <= sum(map(str.isalnum, of_nothing))


def lines() -> list[tuple[str, str]]:
    """Return a table: each way, and what is found of it."""
    shown = []
    for way, found, missed in seen():
        if not missed:
            shown.append((way, "found"))
        elif not found:
            shown.append((way, "**not found**"))
        else:
            shown.append((way, f"found, but **not** {', '.join(missed)}"))
    return shown


if __name__ == "__main__":
    import table

    print(table.aligned([("A value that is written", "is"), *lines()]))
