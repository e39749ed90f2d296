"""Files of a workspace: in and out, streamed, and safe against what hostile code puts there."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell, FileRefused, Session

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
        with pytest.raises(FileRefused, match="No space left"):
            await session.files.put("big", bytes(16 << 20))
        assert await session.files.list() == []
        assert await session.files.put("small", b"fits") == 4


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
