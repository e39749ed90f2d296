"""Files: what a session leaves in its workspace, and what the host is asked to fetch."""

import asyncio
import contextlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.errors import FileRefused
from divingbell.promises.check.rig import (
    CheckRig,
    Watch,
    checks,
    closed_in_time,
    expect,
    judged,
    names_of,
    refused,
)
from divingbell.sandbox import registry
from divingbell.settings.policy import Policy


@checks("F04")
async def planted_start_up_files(rig: CheckRig) -> str:
    async with rig.session() as session:
        await rig.run(session, "F04.py")
    async with rig.session() as session:
        return judged(await rig.run(session, "F04_after.py"))


@checks("F06")
async def links_as_artefacts(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect((await rig.run(session, "F06.py")).status == "ok", "the links were not made")
        for name in ("link.csv", "environment.txt", "sub/root/etc/passwd", "folder/passwd"):
            await refused(session.files.get(name), f"get {name}")
        expect(not await names_of(session), f"links are listed: {await names_of(session)}")
        await refused(session.files.list("folder"), "list of a linked folder")
    return "four links refused, none listed"


@checks("F42")
async def storing_through_links(rig: CheckRig) -> str:
    async with rig.session() as session:
        await rig.run(session, "F06.py")
        for name in ("folder/planted", "sub/root/tmp/planted", "folder/new/planted"):
            await refused(session.files.put(name, b"x"), f"put {name}")
        await session.files.put("link.csv", b"own")
        expect(await session.files.get("link.csv") == b"own", "the link was written through")
        passwd = await session.run("open('/etc/passwd').read()")
        expect("root:" in str(passwd.value), "/etc/passwd was changed")
    return "refused; a link in the file's own place is replaced, not followed"


@checks("F07")
async def links_that_change(rig: CheckRig) -> str:
    async with rig.session() as session:
        seconds = 1.5 * registry.find(session.isolation.backend).slowness  # forks may be slow
        race = asyncio.create_task(rig.run(session, "F07.py", SECONDS=seconds))
        tries = granted = 0
        while not race.done():
            tries += 1
            with contextlib.suppress(FileRefused):
                content = await session.files.get("d/passwd")
                granted += 1
                expect(content in (b"inside", b""), f"bytes from outside: {content[:60]!r}")
            with contextlib.suppress(FileRefused):
                names = {item.path for item in await session.files.list()}
                expect(not any("shadow" in name or "hosts" in name for name in names), str(names))
        expect((await race).status == "ok", "the race did not run")
        expect(tries > 2, "the race was over before the host had tried")
    return f"{tries} tries, {granted} granted, not a byte from outside"


@checks("F09")
async def special_files(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect((await rig.run(session, "F09.py")).status == "ok", "they were not made")
        for name in ("pipe.json", "socket.json", "folder.json"):
            await refused(session.files.get(name), f"get {name}")
        expect(await names_of(session) == {"real.json"}, f"listed: {await names_of(session)}")
    return "refused at once"


@checks("F11")
async def sparse_file(rig: CheckRig) -> str:
    async with rig.session() as session:
        power = int((await rig.run(session, "F11.py")).text)
        async with Watch() as watch:
            await refused(session.files.get("big", most=(1 << power) - 1), "get of a sparse file")
        return f"2**{power} bytes refused; {watch.judge()}"


@checks("F14")
async def deep_folders(rig: CheckRig) -> str:
    # On a busy machine the kernel takes its time for them; it is not what is looked at.
    async with rig.session(timeout=40.0) as session:
        result = await rig.run(session, "F14.py")
        expect("built" in result.text, f"not built: {result.error}")
        await session.files.list()
        await rig.works(session)
        return f"3,000 levels; {await closed_in_time(session)}"


@checks("F15")
async def locked_folders(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect("locked" in (await rig.run(session, "F15.py")).text, "not locked")
        await session.files.list()
        words = await closed_in_time(session)
    async with rig.session() as session:
        expect(not await names_of(session), "files of the session before")
    return words


@checks("F19")
async def neighbours(rig: CheckRig) -> str:
    async with rig.session() as first, rig.session() as second:
        expect("hidden" in (await rig.run(first, "F19.py")).text, "the first made nothing")
        return judged(await rig.run(second, "F19_neighbour.py"))


@checks("F43")
async def names_that_lead_out(rig: CheckRig) -> str:
    names = ("../etc/passwd", "a/../../etc/passwd", "/etc/passwd", "a\0b", "x/" * 2500, "\ud800")
    async with rig.session() as session:
        for name in names:
            await refused(session.files.get(name), f"get {name[:30]!r}")
            await refused(session.files.put(name, b""), f"put {name[:30]!r}")
            await refused(session.files.remove(name), f"remove {name[:30]!r}")
            await refused(session.files.list(name), f"list {name[:30]!r}")
    return f"{len(names)} names refused"


@checks("F50")
async def setuid_files_for_others(rig: CheckRig) -> str:
    settings = rig.bell.settings
    with tempfile.TemporaryDirectory(prefix="divingbell-") as folder:
        os.chmod(folder, 0o755)
        bell = Divingbell(settings.backend)
        bell.settings = replace(
            settings, workspace=folder, pool=0, preload=(), servers=(), policy=Policy()
        )
        async with bell, CheckRig(bell).session() as session:
            expect("planted" in (await rig.run(session, "F50.py")).text, "nothing was planted")
            [planted] = Path(folder).rglob("planted")
            above = [each for each in planted.parents if each.is_relative_to(folder)]
            closed = [each for each in above if _is_closed(each)]
    expect(bool(closed), "every folder on the way to it is open to other users")
    return f"{closed[-1].name} is closed to others"


def _is_closed(folder: Path) -> bool:
    """Whether nobody but the user of this process can enter it, or open it up."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
