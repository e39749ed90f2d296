"""Skills that code saves: their names lead nowhere, and no other user has them."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from divingbell.app import Divingbell
from divingbell.promises.check.rig import SMALL, CheckRig, checks, expect
from divingbell.session.session import Session
from divingbell.settings.policy import Policy

OWNER = "ann"
_OTHERS = ("bob", "Ann", "ann ", "../ann", "ann/", "ann\u200b", None)
_NAMES = ("../../x", "/etc/x", "a\0b", ".", "..", "a/b", "a" * 256, "a\\b", "~", "os", "a\nb", "")
_CODE = "def {0}():\n    'Returns a canary.'\n    return 'canary'\n"
_SAVE = "save_skill({0!r}, {1!r}, 'A canary of its owner')"
_ASK = "from divingbell_inside import tools as _t\n_t.call({0!r}, {1!r})"
_FLOWS = {"flow": [{"from": "host.secret", "to": "host.mail", "action": "deny"}]}


def secret() -> str:
    """A secret."""
    return "canary"


def mail(text: str) -> str:
    """Mail something."""
    return text


@contextlib.asynccontextmanager
async def _house(rig: CheckRig, folder: Path) -> AsyncIterator[Divingbell]:
    """A Divingbell whose skills are kept in a folder of their own."""
    settings = replace(
        rig.bell.settings,
        skills="on",
        servers=(),
        pool=0,
        preload=(),
        policy=Policy.from_mapping(_FLOWS, "promises"),
    )
    async with Divingbell.of(settings, scratch=folder, tools=[secret, mail]) as bell:
        yield bell


async def _refused(session: Session, code: str, what: str) -> str:
    result = await session.run(code)
    expect(result.status == "error", f"{what}: {result.status} {result.value!r:.200}")
    return str(result.error)


async def _done(session: Session, code: str) -> Any:
    result = await session.run(code)
    expect(result.status == "ok", f"{code!r:.80} failed: {result.error}")
    return result.value


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@checks("S01")
async def names_that_lead_elsewhere(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as above:
        folder = Path(above, "kept")
        folder.mkdir()
        async with _house(rig, folder) as bell, bell.session(user=OWNER, **SMALL) as session:
            before = _files(Path(above))
            for name in _NAMES:
                code = _CODE.format("x")
                await _refused(session, _SAVE.format(name, code), f"saved as {name!r}")
                for given in ({"name": name}, {"name": name, "files": True}):
                    await _refused(session, _ASK.format("load_skill", given), f"read {name!r}")
            expect(not await bell.skills.list(user=OWNER), "one of them was kept")
            expect(_files(Path(above)) == before, "something was written")
            # The place of the store itself is a link to somewhere else.
            store, target = bell.skills.stores.of(OWNER), Path(above, "target")
            target.mkdir()
            store.folder.parent.mkdir(parents=True, exist_ok=True)
            store.folder.symlink_to(target)
            await _refused(session, _SAVE.format("x", _CODE.format("x")), "saved through a link")
            expect(not _files(target), "it was written through a link")
            await rig.works(session)
    return f"{len(_NAMES)} names and a link refused"


@checks("S03")
async def skills_of_another_user(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as folder:
        async with _house(rig, Path(folder)) as bell:
            async with bell.session("same", user=OWNER, **SMALL) as session:
                await _done(session, _SAVE.format("canary", _CODE.format("canary")))
                found = await _done(session, "from skills import canary\ncanary()")
                expect(found == "canary", "its owner can't use it")
            for user in _OTHERS:
                async with bell.session("same", user=user, **SMALL) as other:
                    await _look_for_it(other)
    return f"none of {len(_OTHERS)} others found it"


async def _look_for_it(other: Session) -> None:
    who = other.principal.user
    for query in ("''", "'canary'"):
        found = await _done(other, f"search_skills({query}, 'full', limit=100)")
        expect(found == [], f"{who!r} was offered {found!r:.200}")
    for code in ("from skills import canary", "skills.path('canary')"):
        told = await _refused(other, code, f"{who!r} has got it")
        expect("there is no skill" in told, f"{who!r} was told: {told}")
    for more in ({"user": OWNER}, {"principal": OWNER}, {"version": 1}, {"name": "ann/canary"}):
        asked = _ASK.format("load_skill", {"name": "canary", **more})
        await _refused(other, asked, f"{who!r} has got it with {more}")


@checks("T69")
async def data_that_leaves_in_a_skill(rig: CheckRig) -> str:
    send = "from servers.host import mail\nmail('x')"
    with tempfile.TemporaryDirectory(prefix="divingbell-") as folder:
        async with _house(rig, Path(folder)) as bell:
            async with bell.session(user=OWNER, **SMALL) as session:
                await _done(session, "from servers.host import secret\nsecret()")
                await _done(session, _SAVE.format("canary", _CODE.format("canary")))
            ways = (
                "search_skills()",
                "skills.path('canary')",
                _SAVE.format("canary", _CODE.format("canary")),  # the same bytes: the same version
                "from skills import canary",
                "save_skill('canary', 'no code', '-')",
                _SAVE.format("canary", "# Its number is one more.\n" + _CODE.format("canary")),
                "from skills import canary",
            )
            for way in ways:
                async with bell.session(user=OWNER, **SMALL) as later:
                    await _done(later, send)
                    await later.run(way)
                    told = await _refused(later, send, f"sent after {way}")
                    expect("has data of host.secret" in told, told)
    return f"refused after each of {len(ways)} ways to get it"
