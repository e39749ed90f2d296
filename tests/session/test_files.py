"""Files of a workspace: in and out, streamed, and safe against what hostile code puts there."""

import asyncio
import contextlib
import gc
import io
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

from divingbell import (
    DiskFull,
    Divingbell,
    FileMissing,
    FileRefused,
    FileTooLarge,
    InvalidInput,
    Session,
    SessionClosed,
)
from divingbell.border.border import Unread
from divingbell.session import files
from divingbell_inside import frames
from tests.waiting import until

BIG = bytes(range(256)) * 40_000


async def _pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(BIG), 3_000_000):
        yield BIG[start : start + 3_000_000]


async def test_a_file_comes_back_as_it_went_in(session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "source.bin"
    outside.write_bytes(BIG)
    sources = {
        "bytes": BIG,
        "path": outside,
        "file": io.BytesIO(BIG),
        "pieces": _pieces(),
        "plain pieces": (BIG[start : start + 999] for start in range(0, len(BIG), 999)),
        "bytearray": bytearray(BIG),
        "view": memoryview(BIG),
        "wide view": memoryview(BIG).cast("I", [len(BIG) // 16, 4]),
        "folder/of/folders/deep.bin": BIG,
    }
    for name, source in sources.items():
        assert await session.files.put(name, source) == len(BIG)
        assert await session.files.get(name) == BIG
    assert await session.files.put("/workspace/absolute.txt", "grüße") == 7
    assert (await session.run("open('absolute.txt').read()")).value == "grüße"
    assert await session.files.put("empty", b"") == 0
    assert await session.files.get("empty") == b""


async def test_get_streams(session: Session) -> None:
    await session.files.put("big", BIG)
    pieces = [piece async for piece in session.files.stream("big")]
    assert len(pieces) > 10
    assert b"".join(pieces) == BIG


async def test_what_the_code_writes_is_listed_and_fetched(session: Session) -> None:
    await session.run("import os\nos.makedirs('a/b')\nopen('a/b/x.txt', 'w').write('hello')")
    await session.run("open('y.txt', 'w').write('you')")
    listed = await session.files.list()
    assert [(file.path, file.size) for file in listed] == [("a/b/x.txt", 5), ("y.txt", 3)]
    assert listed[0].modified > 1_700_000_000
    assert [file.path for file in await session.files.list("a")] == ["a/b/x.txt"]
    assert await session.files.get("a/b/x.txt") == b"hello"
    await session.files.remove("y.txt")
    assert [file.path for file in await session.files.list()] == ["a/b/x.txt"]


async def test_files_work_while_a_cell_runs(session: Session) -> None:
    running = asyncio.create_task(
        session.run("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'went'")
    )
    await session.files.put("go", b"")
    assert (await running).value == "went"


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/passwd", "/workspacex/y", "..", "a\0b", "x" * 5000, "\ud800", "/"],
)
async def test_paths_that_lead_elsewhere_are_refused(session: Session, path: str) -> None:
    with pytest.raises(FileRefused):
        await session.files.put(path, b"x")
    with pytest.raises(FileRefused):
        await session.files.get(path)


@pytest.mark.parametrize("path", ["", ".", "folder", "missing", "missing/x"])
async def test_what_is_no_file_is_refused(session: Session, path: str) -> None:
    await session.run("import os; os.mkdir('folder')")
    with pytest.raises(FileRefused):
        await session.files.get(path)
    with pytest.raises(FileRefused):
        await session.files.remove(path)


async def test_links_lead_nowhere(session: Session) -> None:
    code = """
import os
open("real", "w").write("real")
os.symlink("/etc/passwd", "link")
os.symlink("real", "inner")
os.symlink("/", "root")
os.symlink("/workspace", "self")
os.mkdir("d"); os.symlink("..", "d/up")
"""
    await session.run(code)
    for path in ("link", "inner", "root/etc/passwd", "self/real", "d/up/real"):
        with pytest.raises(FileRefused):
            await session.files.get(path)
        with pytest.raises(FileRefused):
            await session.files.put(path + "/x", b"x")
    assert [file.path for file in await session.files.list()] == ["real"]
    # Putting over a link replaces the link, not what it leads to.
    await session.files.put("inner", b"new")
    assert await session.files.get("real") == b"real"
    assert await session.files.get("inner") == b"new"


async def test_what_is_not_a_regular_file_is_refused_without_blocking(session: Session) -> None:
    code = """
import os, socket
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("sock")
"""
    await session.run(code)
    for path in ("pipe", "sock"):
        with pytest.raises(FileRefused):
            await session.files.get(path)
    assert await session.files.list() == []
    assert await session.files.put("pipe", b"now a file") == 10


async def test_a_sparse_terabyte_is_refused_by_its_size(session: Session) -> None:
    await session.run("f = open('huge', 'wb'); f.truncate(200 << 20)")
    with pytest.raises(FileRefused, match="allowed"):
        await session.files.get("huge", most=100 << 20)
    result = await session.run("f.truncate(1 << 40)")
    assert result.status in ("limit", "error")


async def test_a_full_disk_is_told_and_leaves_no_half_file(bell: Divingbell) -> None:
    async with bell.session(disk="4MB") as session:
        with pytest.raises(DiskFull, match=r"'big': the session's disk is full: .*disk") as full:
            await session.files.put("big", bytes(16 << 20))
        assert full.value.code == "disk_full"
        assert await session.files.list() == []
        assert await session.files.put("small", b"fits") == 4


@pytest.mark.parametrize("megabytes", [250, 300])
async def test_a_put_that_fails_has_freed_its_space_before_its_error(
    bell: Divingbell, megabytes: int
) -> None:
    def failing() -> Iterator[bytes]:
        yield from [bytes(1 << 20)] * megabytes
        raise LookupError("the database is gone")

    async with bell.session(disk="256MB") as session:
        for _ in range(2):
            with pytest.raises((LookupError, DiskFull)):
                await session.files.put("big", failing())
            await session.files.put("small", bytes(10 << 20))
            await session.files.remove("small")


async def test_a_disk_with_too_many_files_is_full_as_well(bell: Divingbell) -> None:
    async with bell.session(disk="4MB") as session:
        await session.run(
            "try:\n"
            "    for number in range(100_000): open(f'file{number}', 'x').close()\n"
            "except OSError: pass"
        )
        for path in ("one", "folder/one"):
            with pytest.raises(DiskFull):
                await session.files.put(path, b"")


async def test_nothing_is_taken_from_a_source_that_goes_to_a_folder(session: Session) -> None:
    await session.files.put("folder/file", b"kept")
    source = iter([b"one"])
    with pytest.raises(FileRefused, match="'folder': it is a folder: put the file under a name in"):
        await session.files.put("folder", source)
    assert next(source) == b"one"
    assert [file.path for file in await session.files.list()] == ["folder/file"]


async def test_a_race_of_links_never_leads_outside(session: Session) -> None:
    code = """
import os, threading
os.mkdir("d"); open("d/f", "w").write("mine"); os.symlink("/etc", "l")
def race():
    while not os.path.exists("stop"):
        try:
            os.rename("d", "x"); os.rename("l", "d"); os.rename("d", "l"); os.rename("x", "d")
        except OSError: pass
for _ in range(2): threading.Thread(target=race).start()
"""
    await session.run(code)
    for _ in range(100):
        with contextlib.suppress(FileRefused):
            assert await session.files.get("d/f") == b"mine"
        for name in ("d/passwd", "d/hostname"):
            with pytest.raises(FileRefused):
                await session.files.get(name)
        await session.files.list()
    await session.files.put("stop", b"")


async def test_deep_trees_and_strange_names_are_listed_and_closed(bell: Divingbell) -> None:
    async with bell.session() as session:
        code = """
import os
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
os.chdir("/workspace")
open(b"\\xff\\xfe name", "w").close()
open("new\\nline", "w").close()
os.mkdir("locked"); open("locked/x", "w").close(); os.chmod("locked", 0)
"""
        assert (await session.run(code)).status == "ok"
        assert len(await session.files.list()) == 2


async def test_many_files_at_once(session: Session) -> None:
    await asyncio.gather(*(session.files.put(f"f{i}", b"%d" % i) for i in range(20)))
    found = await asyncio.gather(*(session.files.get(f"f{i}") for i in range(20)))
    assert found == [b"%d" % i for i in range(20)]


async def test_every_one_of_many_folders_is_listed(session: Session) -> None:
    code = """
import os
for i in range(100):
    os.makedirs(f"{i:03}/below")
    open(f"{i:03}/below/f", "w").close()
"""
    await session.run(code)
    assert len(await session.files.list()) == 100
    await session.run("os.mkdir('many')\nfor i in range(10_001): open(f'many/{i}', 'w').close()")
    with pytest.raises(FileRefused, match="more than 10,000"):
        await session.files.list()


async def _failing() -> AsyncIterator[bytes]:
    yield BIG[:1_000_000]
    raise LookupError("the database is gone")


def _failing_plainly() -> Iterator[bytes]:
    yield BIG[:1_000_000]
    raise LookupError("the database is gone")


@pytest.mark.parametrize("source", [_failing, _failing_plainly])
async def test_a_source_that_fails_leaves_the_file_as_it_was(session: Session, source: Any) -> None:
    await session.files.put("kept", b"before")
    for name in ("kept", "new"):
        with pytest.raises(LookupError, match="the database is gone"):
            await session.files.put(name, source())
    assert [(file.path, file.size) for file in await session.files.list()] == [("kept", 6)]


async def test_a_put_that_is_cancelled_leaves_nothing(session: Session) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"a"
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(session.files.put("half", endless()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.files.list() == []


async def test_endless_iterators_end_at_the_disk_limit(bell: Divingbell) -> None:
    async with bell.session(disk="4MB") as session:
        with pytest.raises(DiskFull, match="'zeros': the session's disk is full"):
            await session.files.put("zeros", iter(lambda: bytes(1 << 16), None))
        assert await session.files.list() == []


@pytest.mark.parametrize(
    "path", [None, 7, b"a.txt", PureWindowsPath("a.txt"), ["a.txt"]], ids=lambda path: repr(path)
)
async def test_what_is_no_path_is_refused_with_a_sentence(session: Session, path: Any) -> None:
    words = "pass a text or a pathlib.PurePosixPath"
    with pytest.raises(InvalidInput, match=words):
        await session.files.put(path, b"x")
    for request in (session.files.get, session.files.stat, session.files.list):
        with pytest.raises(InvalidInput, match=words):
            await request(path)
    with pytest.raises(InvalidInput, match=words):
        await anext(session.files.stream(path))
    with pytest.raises(InvalidInput, match=words):
        await session.files.remove(path)


@pytest.mark.parametrize("most", ["5MB", -1, 1.5, True])
async def test_most_is_a_number_of_bytes(session: Session, most: Any) -> None:
    with pytest.raises(InvalidInput, match="`most` is a number of bytes"):
        await session.files.get("a", most=most)


async def test_paths_may_be_objects(session: Session) -> None:
    await session.files.put(PurePosixPath("/workspace/a/b.txt"), b"12")
    assert await session.files.get(Path("a") / "b.txt") == b"12"
    assert (await session.files.stat(PurePosixPath("a//./b.txt"))).path == "a/b.txt"
    assert [file.path for file in await session.files.list(PurePosixPath("a"))] == ["a/b.txt"]
    await session.files.remove(PurePosixPath("a/b.txt"))


async def test_stat_says_what_is_there_and_follows_nothing(session: Session) -> None:
    code = """
import os
os.mkdir("folder"); open("folder/file", "w").write("12345")
os.symlink("/etc/passwd", "link"); os.symlink("folder", "way"); os.mkfifo("pipe")
os.utime("folder/file", (1, 1_600_000_000.5))
"""
    await session.run(code)
    found = await session.files.stat("folder/file")
    assert (found.path, found.size, found.modified, found.kind) == (
        "folder/file",
        5,
        1_600_000_000.5,
        "file",
    )
    kinds = {"folder": "folder", "": "folder", "/workspace": "folder", "link": "link"}
    for path, kind in {**kinds, "way": "link", "pipe": "other"}.items():
        found = await session.files.stat(path)
        assert (found.kind, found.size) == (kind, 0)
    with pytest.raises(FileRefused, match="'way/file': a link is in the way") as caught:
        await session.files.stat("way/file")
    assert not isinstance(caught.value, FileMissing)


async def test_what_is_missing_and_what_is_refused_are_told_apart(session: Session) -> None:
    await session.run("import os; os.mkdir('folder'); open('file', 'w').write('123')")
    await session.run("os.symlink('file', 'link'); os.mkfifo('pipe')")
    for request in (session.files.get, session.files.open, session.files.stat, session.files.list):
        for path in ("nothing", "nothing/below", "file/below"):
            with pytest.raises(FileMissing, match=f"^'{path}': ") as caught:
                await request(path)
            assert caught.value.code == "file_missing"
    with pytest.raises(FileMissing):
        await session.files.remove("nothing")
    with pytest.raises(FileTooLarge, match="'file': it has 3 bytes, 2 are allowed") as large:
        await session.files.get("file", most=2)
    assert large.value.code == "file_too_large"
    refused = {
        "folder": "it is a folder",
        "link": "it is a link, and links are never followed",
        "pipe": "it is a pipe, a socket or a device",
    }
    for path, words in refused.items():
        with pytest.raises(FileRefused, match=f"'{path}': {words}") as other:
            await session.files.get(path)
        assert type(other.value) is FileRefused
    with pytest.raises(FileRefused, match=r"'folder': it is a folder: .* shutil.rmtree"):
        await session.files.remove("folder")
    with pytest.raises(FileRefused, match="'folder': it is a folder"):
        await session.files.put("folder", b"")
    with pytest.raises(FileRefused, match="'file/below': a part of the path is a file"):
        await session.files.put("file/below", b"")
    await session.files.remove("link")
    assert await session.files.get("file") == b"123"


async def test_an_open_file_is_read_in_pieces_and_once(session: Session) -> None:
    await session.files.put("big", BIG)
    async with await session.files.open("big") as file:
        assert (file.info.path, file.info.size, file.info.kind) == ("big", len(BIG), "file")
        assert b"".join([piece async for piece in file]) == BIG
        assert [piece async for piece in file] == []
        assert repr(file) == "<OpenFile 'big': 10,240,000 of 10,240,000 bytes read>"
    await file.aclose()
    assert await session.files.put("copy", await session.files.open("big")) == len(BIG)


async def _processes(session: Session) -> int:
    code = "len([name for name in __import__('os').listdir('/proc') if name.isdigit()])"
    return int((await session.run(code)).value)


async def test_open_files_that_are_closed_or_dropped_leave_no_process() -> None:
    # Without copies, which are processes too.
    async with Divingbell(pool=0, copy_after=0) as bell, bell.session() as session:
        before = await _processes(session)

        async def are_open(count: int) -> bool:
            return await _processes(session) == before + count

        await session.files.put("big", BIG)
        closed, dropped = await session.files.open("big"), await session.files.open("big")
        await until(lambda: are_open(2), "each open file has a server")
        await closed.aclose()
        del dropped
        gc.collect()
        await until(lambda: are_open(0), "both servers end")


async def test_a_file_that_is_cut_short_while_it_is_read_is_no_whole_file(session: Session) -> None:
    await session.files.put("big", BIG)
    async with await session.files.open("big") as file:
        await session.run("open('big', 'w').close()")
        with pytest.raises(FileRefused, match="'big': it was cut short"):
            async for _ in file:
                pass


async def test_an_open_file_ends_with_its_session(bell: Divingbell) -> None:
    async with bell.session() as session:
        await session.files.put("big", BIG)
        file = await session.files.open("big")
    with pytest.raises(FileRefused):
        async for _ in file:
            pass
    with pytest.raises(SessionClosed):
        await session.files.open("big")


async def test_many_long_paths_are_listed_and_too_many_are_refused(session: Session) -> None:
    code = """
import os
for depth in range(19):
    os.mkdir("\\x01" * 255); os.chdir("\\x01" * 255)
for number in range(250): open(f"{number:03}", "w").close()
"""
    assert (await session.run(code)).status == "ok"
    assert len(await session.files.list()) == 250
    await session.run("for number in range(250, 900): open(f'{number:03}', 'w').close()")
    with pytest.raises(FileRefused, match="paths of its files have more than"):
        await session.files.list()


async def test_folders_that_two_puts_make_at_once_are_made(session: Session) -> None:
    names = [f"new/folder/{number}" for number in range(10)]
    await asyncio.gather(*(session.files.put(name, b"") for name in names))
    assert sorted(names) == [file.path for file in await session.files.list()]


async def test_a_long_name_of_wide_characters_can_be_put(session: Session) -> None:
    name = "\N{WHALE}" * 63  # 252 bytes of the 255 that a name may have
    await session.files.put(name, b"wide")
    assert [file.path for file in await session.files.list()] == [name]


async def test_files_say_whose_they_are(session: Session) -> None:
    assert repr(session.files).startswith(f"<Files of the session {session.id!r}")


# What a file server says that hostile code has taken over


FORGED: list[tuple[str, list[dict[str, Any]]]] = [
    ("stat", [{"event": "status", "size": -1, "modified": 0}]),
    ("stat", [{"event": "status", "size": True, "modified": 0}]),
    ("stat", [{"event": "status", "size": 1 << 70, "modified": 0}]),
    ("stat", [{"event": "status", "size": 1, "modified": 10**400}]),
    ("stat", [{"event": "status", "size": 1, "modified": "now"}]),
    ("stat", [{"event": "status", "size": 1, "modified": 0, "kind": "door"}]),
    ("stat", [{"event": "status", "size": 1, "modified": 0, "kind": ["file"]}]),
    ("stat", [{"event": "refused", "reason": ["x"], "kind": {"missing": 1}}]),
    ("stat", [{"event": "end"}]),
    ("list", [{"event": "entries", "entries": [{"path": 7, "size": 1, "modified": 1}]}]),
    ("list", [{"event": "entries", "entries": [{"path": "a", "size": "1", "modified": 1}]}]),
    ("list", [{"event": "entries", "entries": [[] for _ in range(150_000)]}]),
    ("list", [{"event": "entries", "name": "x" * 900_000} for _ in range(40)]),
    ("list", [{"event": "entries", "entries": []}] * 2_001),
    ("get", [{"event": "file", "size": 5, "modified": 0}, {"event": "end"}]),
    ("get", [{"event": "file", "size": 1 << 50, "modified": 0}]),
    ("get", [{"event": "file", "size": 5, "modified": 0}, {"event": "piece"}]),
    ("put", [{"event": "go"}, {"event": "stored", "size": None}]),
]


@pytest.mark.parametrize(("operation", "answers"), FORGED)
async def test_forged_answers_are_refused(operation: str, answers: list[dict[str, Any]]) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        forged = b"".join(map(frames.pack, answers))
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(theirs, forged))
        taken = files.Files("forged", ours.detach, lambda: 1 << 20, lambda name: Unread())
        with pytest.raises(FileRefused, match="'a'"):
            await getattr(taken, operation)("a", *([b"x"] if operation == "put" else []))
        sending.cancel()
        await asyncio.wait([sending])


async def test_a_notebook_shows_files_as_a_table_of_text(session: Session) -> None:
    assert (
        "files.list()" in session.files._repr_html_()
        and "<Files" not in session.files._repr_html_()
    )
    await session.files.put("<b>bold</b>.txt", "x" * 1234)
    await session.run("import os; os.utime('<b>bold</b>.txt', (0, 1e11))")
    shown = (await session.files.list())._repr_html_()  # type: ignore[attr-defined]
    assert "&lt;b&gt;bold" in shown and "<b>" not in shown
    assert "1,234" in shown and "<table>" in shown


async def test_a_file_that_comes_in_crumbs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FEWEST_PIECES", 3)
    ours, theirs = socket.socketpair()
    with theirs:
        crumbs = [frames.pack({"event": "piece"}, b"x")] * 5
        theirs.sendall(frames.pack({"event": "file", "size": 5, "modified": 0}) + b"".join(crumbs))
        taken = files.Files("forged", ours.detach, lambda: 1 << 20, lambda name: Unread())
        with pytest.raises(FileRefused, match="crumbs"):
            await taken.get("a")
