import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from divingbell import SandboxUnavailable
from divingbell.host import holding, profile
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.root import Root
from divingbell_inside import layout

PATIENCE = 60.0


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
    assert (made, "current") in root.listed(prepared)


def _pretend(above: Path, made: Root, **changes: object) -> Root:
    """A root of nothing but its marker, which says what that of the real one says."""
    content = json.loads((made.path.parent / root.MARKER).read_text())
    (above / "one" / root.FILES).mkdir(parents=True, exist_ok=True)
    (above / "one" / root.MARKER).write_text(json.dumps({**content, **changes}))
    return Root(above / "one" / root.FILES, "one")


def _origins(made: Root) -> dict[str, str]:
    content = json.loads((made.path.parent / root.MARKER).read_text())
    found: dict[str, str] = content["origins"]
    return found


def test_it_is_stale_when_a_file_that_it_was_made_of_has_changed(
    prepared: profile.Profile, made: Root, elsewhere: Path
) -> None:
    one = _pretend(elsewhere, made)
    assert root.find(prepared) == one
    _pretend(elsewhere, made, origins={**_origins(made), "/bin/sh": "123-456"})
    assert root.find(prepared) is None
    assert root.listed(prepared) == [(one, "stale")]


def test_data_and_the_profile_are_among_what_it_was_made_of(
    prepared: profile.Profile, made: Root
) -> None:
    origins = _origins(made)
    assert str(prepared.path / profile.MARKER) in origins
    for data in ("/usr/share/zoneinfo", "/etc/fonts"):
        assert not Path(data).exists() or data in origins


def test_one_for_other_packages_is_not_stale(
    prepared: profile.Profile, made: Root, elsewhere: Path
) -> None:
    one = _pretend(elsewhere, made, profile="/profiles/of/others")
    assert root.find(prepared) is None
    assert root.listed(prepared) == root.listed(None) == [(one, "other")]


def test_a_root_that_is_in_use_can_not_be_removed(
    prepared: profile.Profile, made: Root, elsewhere: Path
) -> None:
    one = _pretend(elsewhere, made)
    with root.removing(one):
        pass
    assert os.listdir(elsewhere) == []
    one = _pretend(elsewhere, made)
    assert root.prepare(prepared) == one
    with pytest.raises(holding.InUse), root.removing(one):
        raise AssertionError
    assert root.find(prepared) == one


def test_a_root_that_is_just_being_removed_is_not_taken(
    prepared: profile.Profile, made: Root, elsewhere: Path
) -> None:
    one = _pretend(elsewhere, made)
    with root.removing(one):
        assert not root._hold(one)


def test_a_removal_that_fails_leaves_the_root_whole(made: Root, elsewhere: Path) -> None:
    one = _pretend(elsewhere, made)
    with pytest.raises(ValueError), root.removing(one):
        raise ValueError
    assert one.path.exists() and (elsewhere / "one" / root.MARKER).exists()


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_what_is_interrupted_or_fails_leaves_nothing(
    prepared: profile.Profile,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
) -> None:
    def fill(path: Path, _: profile.Profile) -> dict[str, str]:
        path.mkdir(parents=True)
        (path / "half").write_text("")
        raise failure

    monkeypatch.setattr(root, "_fill", fill)
    with pytest.raises((SandboxUnavailable, KeyboardInterrupt)):
        root.prepare(prepared)
    assert os.listdir(elsewhere) == [".lock"]


def test_what_a_killed_process_has_left_is_cleared_up(elsewhere: Path) -> None:
    (elsewhere / root.BUILDING / root.FILES).mkdir(parents=True)
    (elsewhere / f"{root.REMOVING}-one").mkdir()
    with root.locked(lambda line: None):
        assert os.listdir(elsewhere) == [".lock"]


def test_two_that_want_it_at_once_make_it_once(
    prepared: profile.Profile, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[Path] = []
    said: list[str] = []
    second_waits = Event()

    def tell(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            second_waits.set()

    def fill(path: Path, _: profile.Profile) -> dict[str, str]:
        filled.append(path)
        path.mkdir(parents=True)
        assert second_waits.wait(PATIENCE)
        return {}

    monkeypatch.setattr(root, "_fill", fill)
    with ThreadPoolExecutor(3) as threads:
        both = [threads.submit(root.prepare, prepared, tell) for _ in range(2)]
        assert both[0].result() == both[1].result()
    assert len(filled) == 1
    assert "waiting for another process that works on the images" in said


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


_OF_THE_MACHINE = re.compile(
    r"g?shadow-?|machine-id|ssh_host_.*|id_(rsa|ecdsa|ed25519).*|authorized_keys|known_hosts|"
    r"\.ssh|\.aws|\.docker|\.kube|\.gnupg|\.netrc|\.pypirc|\.git-credentials|\.env|"
    r"pip\.conf|uv\.toml|resolv\.conf|sudoers.*|krb5\..*|\.bash_history|\.python_history"
)


def _private(above: Path) -> list[str]:
    """What has the name of a secret, or tells of this machine and its people."""
    found = []
    for folder, folders, names in os.walk(above):
        if folder.endswith("site-packages"):  # packages of others, which everybody has
            folders.clear()
        else:
            found += [f"{folder}/{name}" for name in (*folders, *names)]
    return [path for path in found if _OF_THE_MACHINE.fullmatch(Path(path).name)]


def test_names_of_secrets_are_known(tmp_path: Path) -> None:
    for name in ("etc/shadow", "etc/machine-id", "root/.ssh/id_ed25519", "etc/uv.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert len(_private(tmp_path)) == 5


def test_nothing_private_of_this_machine_is_in_it(prepared: profile.Profile, made: Root) -> None:
    assert _private(made.path) == []
    for name, text in layout.ETC.items():
        assert (made.path / "etc" / name).read_text() == text
    known = {*layout.ETC, "alternatives", "fonts", "ld.so.cache", "mime.types"}
    assert set(os.listdir(made.path / "etc")) <= known
    assert not list(made.path.glob("var/*/*")) and not list(made.path.glob("run/*/*"))


def test_of_homes_it_has_the_interpreter_at_most(prepared: profile.Profile, made: Root) -> None:
    library = made.path / str(prepared.base_prefix).lstrip("/")
    for home in (made.path / "root", *(made.path / "home").iterdir()):
        for folder, folders, names in os.walk(home):
            if library.is_relative_to(folder):  # on the way to it there is nothing else
                way = library.relative_to(folder).parts[:1]
                assert tuple(folders) == way or Path(folder) == library, folder
                assert not names, folder
                if Path(folder) == library:
                    assert set(folders) <= {"bin", "lib"}
                    break
            else:
                assert not names and not folders, folder


def test_hosts_and_passwords_of_package_indexes_are_not_in_it(
    made: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "fonts"
    data.mkdir()
    (data / "all.conf").write_text("open")
    (data / "secret.conf").write_text("index-url = https://user:password@index.internal/")
    (data / "secret.conf").chmod(0o600)
    root._copy_tree(data, tmp_path / "root")
    copied = list((tmp_path / "root").rglob("*.conf"))
    assert [path.name for path in copied] == ["all.conf"]
    # The files of the profile that say how it was made.
    for path in (made.path / "opt/profile").iterdir():
        if path.is_file():
            assert "://" not in path.read_text(), path


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


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_sessions_can_read_it_and_others_not_write_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    data = tmp_path / "data"
    before = os.umask(umask)
    try:
        (data / "open").mkdir(parents=True)
        (data / "open" / "file").touch()
        (data / "closed" / "below").mkdir(parents=True)
        building = tmp_path / "building"
        root._copy_tree(data, building / root.FILES)
        (building / root.FILES / "tmp").mkdir(exist_ok=True)
    finally:
        os.umask(before)
    (building / root.FILES / "tmp").chmod(0o1777)
    root._set_modes(building)
    for path in (building, *building.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.name == "tmp" and mode & stat.S_ISVTX:
            continue
        assert not mode & 0o022, path
        assert path.is_file() or mode == 0o755, path


def test_folders_that_are_closed_to_others_are_left_out(tmp_path: Path) -> None:
    for name, mode in (("open", 0o755), ("closed", 0o700)):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "file").touch()
        (tmp_path / "data" / name).chmod(mode)
    root._copy_tree(tmp_path / "data", tmp_path / "root")
    names = {path.parent.name for path in (tmp_path / "root").rglob("file")}
    assert names == {"open"}
