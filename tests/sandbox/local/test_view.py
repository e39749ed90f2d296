"""What of the host is seen inside: mounts, packages, workspaces on the host's disk."""

import os
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.host.folders import remove_tree


async def test_a_mounted_folder_is_readable_and_not_writable(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "sales.csv").write_text("a,b\n1,2\n")
    for path in (tmp_path, data, *tmp_path.parents):
        if path.owner() == "root" and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    (data / "sales.csv").chmod(0o644)
    async with Divingbell(mounts={"/data": str(data)}, pool=0) as bell, bell.session() as session:
        result = await session.run("import pandas as pd; int(pd.read_csv('/data/sales.csv').b[0])")
        assert result.value == 2
        for code in (
            "open('/data/sales.csv', 'a')",
            "open('/data/new', 'w')",
            "import os; os.remove('/data/sales.csv')",
            "import os; os.chmod('/data/sales.csv', 0o777)",
        ):
            assert (await session.run(code)).status == "error", code
    assert (data / "sales.csv").read_text() == "a,b\n1,2\n"


async def test_extra_packages_are_a_profile_of_their_own(bell: Divingbell) -> None:
    assert (await bell.execute("import humanize")).status == "error"
    async with Divingbell(packages=["humanize"], pool=0) as other:
        code = "import humanize, pandas; humanize.intcomma(1234567)"
        assert (await other.execute(code)).value == "1,234,567"


async def test_the_root_holds_only_what_it_must(bell: Divingbell) -> None:
    code = "import os\n[sorted(os.listdir('/')), sorted(os.listdir('/etc')), os.listdir('/home')]"
    top, etc, homes = (await bell.execute(code)).value
    known = {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root",
             "sbin", "servers", "tmp", "usr", "workspace"}  # fmt: skip
    base = set(Path(os.path.realpath(os.sys.base_prefix)).parts[1:2])  # type: ignore[attr-defined]
    assert set(top) <= known | base
    assert homes == ["diver"]
    allowed = {"passwd", "group", "hosts", "hostname", "nsswitch.conf", "ld.so.cache",
               "alternatives", "fonts", "mime.types"}  # fmt: skip
    assert set(etc) <= allowed


async def test_a_workspace_on_the_hosts_disk_works_and_goes_away(tmp_path: Path) -> None:
    async with Divingbell(workspace=str(tmp_path), pool=0, disk="8MB") as bell:
        async with bell.session() as session:
            code = "open('big', 'wb').write(bytes(20 << 20)); import os; os.path.getsize('big')"
            assert (await session.run(code)).value == 20 << 20
            assert len(await session.files.get("big", most=1 << 30)) == 20 << 20
            code = "open('/tmp/big', 'wb').write(bytes(20 << 20))"
            assert (await session.run(code)).limit == "disk"
            own = next(tmp_path.glob("*/sessions"))
            assert len(list(own.iterdir())) == 1
            async with bell.session() as other:
                assert (await other.run("import os; os.listdir('/workspace')")).value == []
            await session.run(
                "os.mkdir('deep'); os.chdir('deep')\n"
                "for _ in range(2000): os.mkdir('d'); os.chdir('d')\n"
                "os.chdir('/workspace'); os.symlink('/etc', 'link')\n"
                "os.mkdir('l'); os.chmod('l', 0)"
            )
        assert not list(own.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("depth", [1, 3000])
def test_a_hostile_tree_is_removed_whatever_its_depth(tmp_path: Path, depth: int) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree = tmp_path / "tree"
    tree.mkdir()
    here = os.getcwd()
    os.chdir(tree)
    try:
        os.symlink(outside, "link")
        for _ in range(depth):
            os.mkdir("d")
            Path("f").write_text("x")
            os.mkdir("locked")
            os.chmod("locked", 0)
            os.chdir("d")
    finally:
        os.chdir(here)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").read_text() == "kept"
    remove_tree(tree)
