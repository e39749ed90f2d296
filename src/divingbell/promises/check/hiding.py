"""What a model does not get to see, whatever code or a server does with it."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import unquote

from divingbell.models import Result
from divingbell.promises.check.exits import Ear, connected
from divingbell.promises.check.privacy_rig import SEALED, WHO, PrivacyRig, privacy_checks
from divingbell.promises.check.rig import expect
from divingbell.promises.check.tool_rig import NAME
from divingbell.session.session import Session
from divingbell_inside import drawn_texts

_PLAIN_IMAGE = "b'\\x89PNG\\r\\n\\x1a\\n\\xff'"
_PART = 6
"""Letters of a value that stand together by no accident."""
_SHOWING = (
    "print(who)", "who", "list(who.values())", "{who['email']: 1, 'n': [who['phone']]}",
    "x = (who['email'], who['first_name'] + ' ' + who['last_name']); x",
    "import sys; print(repr(who), file=sys.stderr)",
    "display(who)", "display({'text/html': f'<b>{who}</b>', 'text/plain': 'x'}, raw=True)",
    "display({'application/json': who, 'text/plain': 'x'}, raw=True)",
    "import json; json.dumps(who).encode()", "print(repr(who).replace(who['key'], '').upper())",
    "import os; os.system('echo \"' + who['email'] + '\"')",
    "globals()[who['first_name']] = 1",
)  # fmt: skip
_FAILING = (
    "raise ValueError(who)", "who[who['email']]", "assert not who, who['phone']",
    "exec('raise KeyError(1) # ' + who['email'])", "compile(who['first_name'] + ' +', 'x', 'exec')",
    "import warnings; warnings.warn(str(who))",
    f"servers.{NAME}.fail(who['email'])", f"servers.{NAME}.fail(who['key'])",
    "call_mcp_tool(who['email'], {})", f"servers.{NAME}.send(who, who)",
    "raise ExceptionGroup(who['email'], [ValueError(who['phone'])])",
    "open(who['last_name'])", "import sys; sys.exit(who['street'])",
)  # fmt: skip
_IN_PIECES = """
import sys, time
def say(text):
    sys.stdout.write(text); sys.stdout.flush(); time.sleep(0.001)
for letter in who['email'] + ' ' + who['key'] + '\\n':
    say(letter)
for at in range(1, len(who['email'])):
    say(who['email'][:at]); say(who['email'][at:] + '\\n')
"""
_CUT = """
for number in range(3_000):
    print(who['email'] + ' ' * (number % 7), end='')
"""
_PARTED = (
    "say(half); shout(rest)",
    "say(half); shout('a warning\\n'); say(rest)",
    "say(half); display('a table'); say(rest)",
)
_SAYING = """
import sys, time
half, rest = who['street'][:5], who['street'][5:]
def to(stream):
    def write(text):
        stream.write(text); stream.flush(); time.sleep(0.05)
    return write
say, shout = to(sys.stdout), to(sys.stderr)
"""
_LONG_VALUE = "[who['email']] * 200_000"
_ENCODINGS = """
import base64, codecs
value = sealed['email']
encoded = {
    'base64': base64.b64encode(value.encode()).decode(), 'hex': value.encode().hex(),
    'reversed': value[::-1], 'letters': list(value), 'rot13': codecs.encode(value, 'rot13'),
    'spaced': ' '.join(value), 'numbers': [ord(letter) for letter in value],
}
print(encoded)
for letter in value: print(letter)
encoded
"""
_SEALED = f"sealed = servers.{SEALED}.people()['people'][0]"
_DISGUISES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("value[:5] + '\\x1b[1;31m' + value[5:]", lambda text: re.sub(r"\x1b\[[\d;]*m", "", text)),
    ("value[:5] + '\\r' + value[5:]", lambda text: text.replace("\r", "")),
    ("value[:5] + 'x\\b' + value[5:]", lambda text: text.replace("x\b", "")),
    ("'#' * 5 + value[5:] + '\\r' + value[:5]", lambda text: _overwritten(text)),
    ("'\\u200b'.join(value)", lambda text: text.replace("\u200b", "")),
    ("''.join(f'%{ord(letter):02x}' for letter in value)", unquote),
    ("''.join(f'&#{ord(letter)};' for letter in value)", html.unescape),
    (
        "''.join(f'\\\\u{ord(letter):04x}' for letter in value)",
        lambda text: re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text),
    ),
    ("value[:9] + '...'", lambda text: text),
)
"""Expressions that make a value look like something else, and what makes it plain again."""


@privacy_checks("I01")
async def values_as_they_are(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        await rig.value(session, WHO)
        for code in _SHOWING:
            rig.hidden_in(await rig.shown(session, code))
    seen = await _by_a_client(rig)
    expect("email" in seen and "[NAME_" in seen, f"too little was shown: {seen[:300]}")
    rig.hidden_in(seen)
    return f"{len(_SHOWING)} ways, and what a client gets, names of files too, have tokens"


async def _by_a_client(rig: PrivacyRig) -> str:
    """All that a client gets: of a cell, of a direct call, of a file with a name."""
    write = "open(who['email'] + '.txt', 'w').write(str(who))"
    async with connected(rig, Ear()) as client:
        ran = await client.call_tool("execute_python", {"code": f"{WHO}\n{write}\nwho"})
        called = await client.call_tool("people", {})
        listed = await client.list_resources()
        [uri] = [each.uri for each in listed.resources if each.uri.endswith(".txt")]
        said = (ran, called, listed, await client.read_resource(uri))
    return json.dumps([each.model_dump(mode="json") for each in said], ensure_ascii=False)


@privacy_checks("I06")
async def values_in_errors(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        await rig.value(session, WHO)
        for code in _FAILING:
            rig.hidden_in(await rig.shown(session, code))
    return f"{len(_FAILING)} errors, warnings and calls have tokens"


@privacy_checks("I10")
async def values_cut_in_two(rig: PrivacyRig) -> str:
    async with rig.session(output="20KB") as session:
        await rig.value(session, WHO)
        for code in (_IN_PIECES, _CUT, _LONG_VALUE):
            _no_part_in(rig, await rig.shown(session, code))
        await rig.value(session, _SAYING)
        for code in _PARTED:
            _not_parted(rig, await session.run(code))
        words = ["sh", "-c", 'printf "%s" "$1"; sleep 0.05; echo "$2"', "sh"]
        cut = rig.person.email.index("@") + 3
        halves = [rig.person.email[:cut], rig.person.email[cut:]]
        pieces = [event.text or "" async for event in session.command_stream([*words, *halves])]
        _no_part_in(rig, "".join(pieces))
    return (
        "by letters, at every place, at the limit of the output, of a value, of a command, by the "
        "other stream and by a display"
    )


def _not_parted(rig: PrivacyRig, result: Result) -> None:
    """Look at both streams as they were written, and at each of them alone."""
    for name in ("stdout", "stderr"):
        rig.hidden_in("".join(str(each.data) for each in result.outputs if each.name == name))
    rig.hidden_in(result.text)
    expect("[ADDRESS_" in result.text, f"too little was shown: {result.text[:200]}")


def _no_part_in(rig: PrivacyRig, text: str) -> None:
    rig.hidden_in(text)
    for value in (rig.person.email.partition("@")[0], rig.person.row["key"][8:]):
        for at in range(len(value) - _PART + 1):
            part = value[at : at + _PART]
            expect(part not in text, f"{part}, a part of a value, is shown: {text[:200]}")


@privacy_checks("I11")
async def values_in_disguise(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        await rig.value(session, WHO)
        for field in ("email", "first_name"):
            for expression, plain in _DISGUISES:
                result = await session.run(f"value = who[{field!r}]\nprint({expression})")
                text = plain(result.text)
                expect(result.text.strip() != "", f"nothing was shown of {expression}")
                rig.hidden_in(text)
                expect(rig.person.row[field][:9] not in text, f"{expression}: {text!r}")
    return f"{len(_DISGUISES)} disguises hide nothing from the border"


def _overwritten(text: str) -> str:
    """A line as a terminal shows it, where a carriage return goes back to its start."""
    before, _, after = text.strip("\n").rpartition("\r")
    return after + before[len(after) :]


@privacy_checks("I19")
async def pictures(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        await rig.value(session, WHO)
        image = "b'\\x89PNG\\r\\n\\x1a\\n\\xff' + str(who).encode()"
        for kind, data in (("image/png", image), ("image/svg+xml", "f'<svg>{who}</svg>'")):
            result = await session.run(f"display({{{kind!r}: {data}}}, raw=True)")
            held = [output for output in result.outputs if output.type == kind]
            expect(not held and "held back" in result.text, f"{kind}: {result.text[:200]}")
        for words, is_shown in (("str(who).encode()", False), ("b'north'", True)):
            forms = f"{{'image/png': {_PLAIN_IMAGE}, {drawn_texts.KIND!r}: {words}}}"
            result = await session.run(f"display({forms}, raw=True)")
            is_held = "its texts have " in result.text
            shown = any(output.type == "image/png" for output in result.outputs)
            expect(shown == is_shown and is_held != is_shown, f"a chart: {result.text[:200]}")
    async with connected(rig, Ear()) as client:
        content = (await client.call_tool("portrait", {})).model_dump(mode="json")["content"]
    kinds = {block["type"] for block in content}
    expect(kinds == {"text", "resource"}, f"there is {kinds}")
    blobs = [block["resource"].get("blob") or "" for block in content if "resource" in block]
    rig.hidden_in(json.dumps(content))
    rig.hidden_in("".join(base64.b64decode(blob).decode("utf-8", "replace") for blob in blobs))
    return "images, sounds, files and charts of values are held back; what is text has tokens"


# Behind the border of the sandbox


@privacy_checks("I02")
async def encoded_values(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        await rig.value(session, _SEALED)
        token = str(await _real(session, "sealed['email']"))
        encoded = (await session.run(_ENCODINGS)).value
        expect(isinstance(encoded, dict), f"nothing was encoded: {encoded}")
        made = [
            base64.b64decode(encoded["base64"]).decode(), bytes.fromhex(encoded["hex"]).decode(),
            encoded["reversed"][::-1], "".join(encoded["letters"]),
            "".join(map(chr, encoded["numbers"])), encoded["spaced"].replace(" ", ""),
        ]  # fmt: skip
        expect({*made} == {token}, f"there is something else than the token: {made}")
        rig.hidden_in(json.dumps(await _real(session, "sealed")))
    return "there is nothing to encode but the token"


@privacy_checks("I05")
async def measured_values(rig: PrivacyRig) -> str:
    email = rig.person.email
    code = f"""
import re
value = sealed['email']
[len(value) == {len(email)}, value == {email!r}, value < 'a', '@' in value,
 value.startswith({email[0]!r}), bool(re.search('example', value)), hash(value) == hash({email!r})]
"""
    async with rig.session() as session:
        await rig.value(session, _SEALED)
        answers = await rig.value(session, code)
        expect(answers == [False, False, True, False, False, False, False], f"it says {answers}")
        rig.hidden_in(await rig.shown(session, "int(value)"))
    return "length, order, letters and equality are those of the token"


async def _real(session: Session, expression: str) -> object:
    """What code has, as a program gets it."""
    result = await session.run(f"_promise = {expression}")
    expect(result.status == "ok", f"{expression}: {result.error}")
    return await session.get("_promise")
