"""Folders of other users of the machine: whether something is kept or found in them, or removed."""

import asyncio
import contextlib
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from divingbell.errors import DivingbellError
from divingbell.gateway.upstream.transport import orphan_groups
from divingbell.gateway.upstream.transport.orphan_groups import ProcessGroups
from divingbell.host import private_file, profile
from divingbell.host.folders import HostFolders, remove_tree
from divingbell.host.owned_folder import NotOurs
from divingbell.host.uids import Uids
from divingbell.promises.check.rig import CheckRig, PromiseBroken, checks, expect

STRANGER = 64_321
"""A uid that nobody has."""


@contextlib.contextmanager
def _of_a_stranger() -> Iterator[Path]:
    """A folder that another user has made first, if we may be one; else one open to all."""
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        above = Path(name)
        above.chmod(0o1777)
        planted = above / "planted"
        if os.geteuid() == 0:
            user = {"user": STRANGER, "group": STRANGER, "extra_groups": ()}
            subprocess.run(["mkdir", planted], check=True, **user)  # type: ignore[call-overload]
        else:
            planted.mkdir()
            planted.chmod(0o777)
        yield planted


@checks("G24")
async def folders_of_others(rig: CheckRig) -> str:
    with _of_a_stranger() as planted:
        return await asyncio.to_thread(_use_every_way, planted)


def _use_every_way(planted: Path) -> str:
    nothing = Path(os.devnull)
    ways: dict[str, Callable[[], object]] = {
        "profiles": lambda: profile.prepare(directory=planted, lock=nothing),
        "profiles below": lambda: profile.prepare(directory=planted / "below", lock=nothing),
        "workspaces": lambda: HostFolders(planted),
        "files": lambda: private_file.write(planted / "file", b""),
        "locks of uids": lambda: Uids(1_000_000, 1024, planted),
    }
    before = planted.stat()
    for name, use in ways.items():
        try:
            use()
        except NotOurs as refusal:
            expect(str(planted) in str(refusal), f"{name}: {refusal}")
        except (DivingbellError, OSError) as error:
            raise PromiseBroken(f"used for {name}, and then: {error}") from None
        else:
            raise PromiseBroken(f"used for {name}, although another user may write there")
    expect(planted.stat() == before and not any(planted.iterdir()), "it was changed")
    return f"refused as folder of {', '.join(ways)}"


@checks("G25")
async def groups_of_others(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name, _of_a_stranger() as planted:
        return await asyncio.to_thread(_name_others, Path(name) / "groups", planted)


def _name_others(own: Path, planted: Path) -> str:
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, start_new_session=True) as other:
        try:
            ProcessGroups(own).note(other.pid)
            note = own / str(other.pid)
            right = note.read_text()
            (planted / note.name).write_text(right)
            orphan_groups.end_orphans(planted)
            expect(_answers(other), "ended because of a note that another user left")
            for wrong in ("", right.partition(" ")[0], f"1{right}", f"{right}1"):
                note.write_text(wrong)
                orphan_groups.end_orphans(own)
                expect(_answers(other), f"ended because of the note {wrong!r}")
        finally:
            other.kill()
    return "not ended by five notes"


def _answers(other: "subprocess.Popen[bytes]") -> bool:
    """Whether it lives. One that was killed a moment ago still has a process, but says nothing."""
    assert other.stdin is not None and other.stdout is not None
    try:
        os.write(other.stdin.fileno(), b"?")
    except BrokenPipeError:
        return False
    return os.read(other.stdout.fileno(), 1) == b"?"


@checks("G26")
async def links_among_what_is_removed(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        victim, link = Path(name, "victim"), Path(name, "link")
        victim.mkdir()
        victim.chmod(0o755)
        (victim / "file").touch()
        link.symlink_to(victim)
        with contextlib.suppress(OSError):
            remove_tree(link)
        mode = stat.S_IMODE(victim.stat().st_mode)
        expect(mode == 0o755, f"the mode behind the link is {mode:o} now")
        expect((victim / "file").exists(), "a file behind the link is gone")
    return "not followed"
