"""What is kept of values, and what looking for them costs."""

import base64
import contextlib
import logging
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.errors import ToolFailed
from divingbell.parts import make_border
from divingbell.promises.check.privacy_rig import TOKEN, PrivacyRig, privacy_checks
from divingbell.promises.check.rig import SMALL, Watch, expect
from divingbell.promises.check.tool_rig import NAME, Recorder
from divingbell.settings.vault import VaultSettings

HOSTILE = (
    "@", "a@", "a@b.co ", "a@b.", "1", "4111 ", "4111 1111 1111 1111 ", "card 4111 1111 1111 1112 ",
    "call 0123 456 789 ", "+1 2 3 4 5 6 7 8 ", "8.8.8.8 ", "1:", "DE89 3704 ", "eyJaaaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----", "bearer aaaaaaaaaaaa ", "password=", "a://a:b@c ", "%40",
    "\\u0040", "\x1b[31m", "1\u200b", "phone card ssn passport born ", "born 1/1/1990 ", '"a"@',
    "[EMAIL_482715]", "[EMAIL_", "&#64;", "\b", "Given000001 ", "Given000... ",
)  # fmt: skip
"""What keeps each of the detectors busy when it is repeated."""
_SIZE = 3_000
_STEPS_EACH = 40
"""Calls of functions for each character: of hostile texts some ten were counted at most."""
_TWICE = 2.4
"""Times the work for twice the text: a little more than two, for what is done once for all."""
_FINDS = 100_000
_PRINTED = 30_000
"""Characters of each hostile text that a cell prints."""
_KNOWN = 25_000
"""People of one server: each has two names, and this is as much as is learned from one."""
_NEIGHBOURS_TEXT = (
    "Ann Leeson, ann@example.org, wrote to Given000001 about 4111 1111 1111 1111. " * 20
)


@privacy_checks("I20", alone=True)
async def values_that_are_kept(rig: PrivacyRig) -> str:
    row = rig.person.row
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name, _all_logged() as recorder:
        folder = Path(name)
        async with _with_a_vault(rig, folder) as bell, bell.session(**SMALL) as session:
            await session.files.put("people.csv", ",".join(row) + "\n" + ",".join(row.values()))
            shown = await session.run("read = open('people.csv').read()\nread")
            tokens = TOKEN.findall(str(shown.value))
            expect(len(tokens) > 4, f"too little was replaced: {shown.value}")
            await session.reveal(tokens[0])
            for code in ("raise ValueError(read)", "servers.host.told(read)", "print(read)"):
                await session.run(code)
            await session.run(f"servers.host.told({tokens[0]!r})")
            await session.command(["sh", "-c", 'cat people.csv >&2; exit "$0"', tokens[0]])
        kept = b"".join(path.read_bytes() for path in folder.glob("vault.db*"))
    expect(tokens[0].encode() in kept, "the vault was not written")
    rig.hidden_in(kept.decode("latin-1"))
    expect("host.told" in str(recorder.lines), f"too little was logged: {recorder.lines}")
    rig.hidden_in("\n".join(recorder.lines))
    return f"{len(kept):,} bytes of the vault and {len(recorder.lines)} lines of the log have none"


def told(words: str) -> str:
    """A tool that fails, and says what it was told."""
    raise ToolFailed(f"nobody knows {words}")


@contextlib.asynccontextmanager
async def _with_a_vault(rig: PrivacyRig, folder: Path) -> AsyncIterator[Divingbell]:
    """A Divingbell whose vault and key are files in a folder."""
    key = folder / "key"
    key.write_text(base64.b64encode(secrets.token_bytes(32)).decode())
    key.chmod(0o600)
    vault = VaultSettings(store=f"sqlite:{folder / 'vault.db'}", key_file=str(key))
    settings = replace(rig.bell.settings, vault=vault, servers=())
    async with contextlib.AsyncExitStack() as undo:
        border = await make_border(settings, undo)
        settings = replace(settings, privacy="off")  # because the border is given
        bell = Divingbell.of(settings, border=border, scratch=folder, tools=[told])
        yield await undo.enter_async_context(bell)


@contextlib.contextmanager
def _all_logged() -> Iterator[Recorder]:
    """Keep all that is logged here, down to the smallest matter; nobody else hears of it."""
    ours, recorder = logging.getLogger("divingbell"), Recorder()
    level, ours.propagate = ours.level, False
    ours.addHandler(recorder)
    ours.setLevel(logging.DEBUG)
    try:
        yield recorder
    finally:
        ours.setLevel(level)
        ours.removeHandler(recorder)
        ours.propagate = True


@privacy_checks("I21", alone=True)
async def texts_that_take_long(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        border, who, most = rig.bell.border, session.principal, 0.0
        for piece in HOSTILE:
            text = piece * (_SIZE // len(piece))
            border.text(text, who)
            once = _steps(border.text, text, who)
            twice = _steps(border.text, text * 2, who)
            expect(twice <= _TWICE * once + _SIZE, f"{piece!r}: {once:,} steps, then {twice:,}")
            most = max(most, once / len(text))
        expect(most <= _STEPS_EACH, f"{most:.0f} steps for a character")
        async with Watch() as watch:
            await session.run(f"print('a@b.co ' * {_FINDS})")
            # In two parts: a token that is none would be refused where it stands in the code.
            pieces = [
                f"({piece[:1]!r} + {piece[1:]!r}) * {_PRINTED // len(piece)}" for piece in HOSTILE
            ]
            await session.run("\n".join(f"print({piece})" for piece in pieces))
        await rig.works(session)
    return f"{most:.1f} steps for a character at most; {watch.judge()}"


@privacy_checks("I22", alone=True)
async def what_others_have_learned(rig: PrivacyRig) -> str:
    async with rig.session(memory="512MB") as one, rig.session() as neighbour:

        def look() -> str:
            return rig.bell.border.text(_NEIGHBOURS_TEXT, neighbour.principal)

        shown, before = look(), _steps(look)
        people = "".join(f"Put{n:06},Away{n:06}\n" for n in range(_KNOWN))
        await one.files.put("people.csv", f"first_name,last_name\n{people}")
        await rig.value(one, f"len(servers.{NAME}.people(more={_KNOWN})['people'])")
        known = rig.bell.border.text("Given000001 Away024999", one.principal)
        expect("Given" not in known and "Away" not in known, f"too little was learned: {known}")
        expect(look() == shown, "the neighbour's text is another one now")
        after = _steps(look)
        expect(after <= before * 1.1, f"{before:,} steps before, {after:,} after")
        await rig.works(neighbour)
    return f"{before:,} steps before, {after:,} after {4 * _KNOWN:,} values"


def _steps(work: Callable[..., object], *arguments: object) -> int:
    """Count the calls of functions that some work takes: no clock says as surely what it costs."""
    count = 0

    def step(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    others = sys.getprofile()
    sys.setprofile(step)
    try:
        work(*arguments)
    finally:
        sys.setprofile(others)
    return count
