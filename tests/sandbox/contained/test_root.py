import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell import profile
from divingbell.sandbox.contained import dockerfile, root
from divingbell.sandbox.contained.root import Root
from divingbell_inside import layout


@pytest.fixture(scope="module")
def prepared() -> profile.Profile:
    return profile.prepare()


@pytest.fixture(scope="module")
def made(prepared: profile.Profile) -> Root:
    return root.prepare(prepared)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(root, "folder", lambda: tmp_path)
    yield tmp_path


def test_it_is_made_once_and_found_again(prepared: profile.Profile, made: Root) -> None:
    assert root.find(prepared) == made == root.prepare(prepared)
    assert made not in root.stale(prepared)


def test_it_is_stale_when_a_file_that_it_was_made_of_has_changed(
    prepared: profile.Profile, made: Root, elsewhere: Path
) -> None:
    content = json.loads((made.path.parent / root.MARKER).read_text())
    (elsewhere / "one").mkdir()
    marker = elsewhere / "one" / root.MARKER
    marker.write_text(json.dumps(content))
    assert root.find(prepared) is not None
    content["origins"]["/bin/sh"] = "123-456"
    marker.write_text(json.dumps(content))
    assert root.find(prepared) is None
    assert [each.version for each in root.stale(prepared)] == ["one"]


def test_it_is_stale_when_the_code_for_inside_has_changed(
    prepared: profile.Profile, made: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "container.py").write_text("changed")
    monkeypatch.setattr(root, "_inside", lambda: tmp_path)
    assert root.find(prepared) is None


def test_nothing_in_it_gives_privileges_and_all_of_it_can_be_read(made: Root) -> None:
    for above, _, names in os.walk(made.path):
        assert os.stat(above).st_mode & 0o005 == 0o005, above
        for name in names:
            found = os.lstat(os.path.join(above, name))
            assert not found.st_mode & (stat.S_ISUID | stat.S_ISGID), name
            assert stat.S_ISLNK(found.st_mode) or found.st_mode & 0o004, os.path.join(above, name)


def test_nothing_of_the_host_is_in_it(made: Root) -> None:
    assert sorted(os.listdir(made.path / "root")) in ([], [".pyenv"])
    assert (made.path / "etc/passwd").read_text() == layout.ETC["passwd"]
    assert not (made.path / "etc/shadow").exists()
    assert not list(made.path.glob("home/*/*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_python_and_the_profile_work_in_it(made: Root) -> None:
    code = "import IPython, pandas, sqlite3, ssl, lzma, ctypes; print('works')"
    answer = subprocess.run(
        [shutil.which("chroot"), made.path, f"{layout.PROFILE}/bin/python", "-I", "-c", code],
        env=layout.ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert answer.stdout == "works\n", answer.stderr
    programs = subprocess.run(
        [
            shutil.which("chroot"),
            made.path,
            "/bin/sh",
            "-c",
            "echo b a | tr ' ' '\\n' | sort | awk 1 | head -1",
        ],
        capture_output=True,
        text=True,
    )
    assert programs.stdout == "a\n", programs.stderr


def test_a_dockerfile_comes_with_all_that_it_copies(tmp_path: Path) -> None:
    dockerfile.write(tmp_path, ["scikit-learn>=1.5"])
    text = (tmp_path / "Dockerfile").read_text()
    for line in text.splitlines():
        if line.startswith("COPY"):
            for name in line.split()[1:-1]:
                assert (tmp_path / name).exists(), name
    assert (tmp_path / "extra.txt").read_text() == "scikit-learn>=1.5\n"
    assert "--require-hashes" in text
