"""What is committed is what web/ builds, byte for byte."""

import shutil
import subprocess
from pathlib import Path

from divingbell.surfaces.http.console.page import STATIC
from tests import real_servers

WEB = real_servers.ROOT / "web"
PATIENCE = 300.0


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_build_makes_what_is_committed(tmp_path: Path) -> None:
    packages = real_servers.console_packages()
    for name in ("index.html", "package.json", "tsconfig.json", "vite.config.ts"):
        shutil.copy(WEB / name, tmp_path)
    shutil.copytree(WEB / "src", tmp_path / "src")
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    node, bin = real_servers.new_node(), packages / "node_modules"
    for program in (
        [bin / "typescript/bin/tsc", "--noEmit"],
        [bin / "vite/bin/vite.js", "build", "--outDir", "built", "--logLevel", "error"],
    ):
        done = subprocess.run(
            [node, *map(str, program)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    built, committed = _files(tmp_path / "built"), _files(STATIC)
    assert sorted(built) == sorted(committed)
    assert built == committed, "run `npm run build` in web/"


def test_the_lock_names_no_registry() -> None:
    text = (WEB / "package-lock.json").read_text()
    assert "resolved" not in text and "http://" not in text
    assert (WEB / ".npmrc").read_text().strip() == "omit-lockfile-registry-resolved=true"
