"""Landlock, always in a process of its own: what it closes stays closed."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell_inside import landlock

SOURCE = Path(landlock.__file__).parents[1]
ABI = landlock.abi()

PRELUDE = f"""
import ctypes, errno, fcntl, os, signal, socket, subprocess, sys
sys.path.insert(0, {str(SOURCE)!r})
from divingbell_inside import landlock, seccomp
assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
folder = sys.argv[1]
def attempt(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("ok")
def write(path):
    with open(path, "w") as file:
        file.write("x")
def read(path):
    with open(path) as file:
        file.read()
"""
RESTRICT = """
assert landlock.restrict(
    ["/usr", "/bin", "/lib", "/lib64", f"{folder}/read", f"{folder}/read-file"],
    [f"{folder}/write", f"{folder}/write-too", "/dev/null", f"{folder}/absent"],
) == landlock.abi()
"""


def needs(version: int) -> pytest.MarkDecorator:
    return pytest.mark.skipif(version > ABI, reason=f"Landlock {version} is not in this kernel")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("read", "write", "write-too", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("content")
    (tmp_path / "read-file").write_text("content")
    return tmp_path


def answers(folder: Path, body: str, restrict: str = RESTRICT) -> list[str]:
    finished = subprocess.run(
        [sys.executable, "-I", "-c", PRELUDE + restrict + body, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def test_the_version_is_never_negative() -> None:
    assert ABI >= 0


@needs(1)
def test_only_the_named_paths_are_reachable(folder: Path) -> None:
    body = """
attempt(read, f"{folder}/read/file")
attempt(os.listdir, f"{folder}/read")
attempt(read, f"{folder}/read-file")
attempt(read, f"{folder}/outside/file")
attempt(os.listdir, folder)
attempt(read, "/etc/passwd")
attempt(os.listdir, "/")
"""
    assert answers(folder, body) == ["ok", "ok", "ok", "EACCES", "EACCES", "EACCES", "EACCES"]


@needs(1)
def test_only_writable_paths_can_be_changed(folder: Path) -> None:
    body = """
for place in ("write", "read", "outside"):
    attempt(write, f"{folder}/{place}/new")
    attempt(write, f"{folder}/{place}/file")
    attempt(os.mkdir, f"{folder}/{place}/folder")
    attempt(os.symlink, "/", f"{folder}/{place}/link")
    attempt(os.mkfifo, f"{folder}/{place}/fifo")
    attempt(os.unlink, f"{folder}/{place}/file")
attempt(write, f"{folder}/read-file")
attempt(write, "/dev/null")
"""
    assert answers(folder, body) == ["ok"] * 6 + ["EACCES"] * 12 + ["EACCES", "ok"]


@needs(1)
def test_no_device_can_be_made_even_where_writing_is_allowed(folder: Path) -> None:
    body = """
for kind in (0o20600, 0o60600):
    attempt(os.mknod, f"{folder}/write/device", kind, os.makedev(1, 3))
"""
    # Root is stopped by Landlock, others by their lack of privilege before it.
    assert set(answers(folder, body)) <= {"EACCES", "EPERM"}


@needs(1)
def test_programs_run_from_readable_paths_only(folder: Path) -> None:
    for name in ("read", "outside"):
        program = folder / name / "program"
        program.write_bytes(Path("/bin/true").read_bytes())
        program.chmod(0o755)
    body = """
for place in ("read", "outside"):
    attempt(os.posix_spawn, f"{folder}/{place}/program", ["program"], {})
"""
    assert answers(folder, body) == ["ok", "EACCES"]


@needs(2)
def test_files_move_between_writable_folders_and_not_out_of_them(folder: Path) -> None:
    body = """
attempt(os.rename, f"{folder}/write/file", f"{folder}/write-too/moved")
attempt(os.rename, f"{folder}/write-too/moved", f"{folder}/outside/moved")
attempt(os.link, f"{folder}/read/file", f"{folder}/write/linked")
"""
    first, *others = answers(folder, body)
    assert first == "ok"
    assert set(others) <= {"EACCES", "EXDEV"}


@needs(3)
def test_a_readable_file_can_not_be_truncated(folder: Path) -> None:
    body = """
attempt(os.truncate, f"{folder}/write/file", 0)
attempt(os.truncate, f"{folder}/read/file", 0)
"""
    assert answers(folder, body) == ["ok", "EACCES"]


@needs(4)
def test_tcp_is_closed(folder: Path) -> None:
    body = """
attempt(socket.socket().bind, ("127.0.0.1", 0))
attempt(socket.socket().connect, ("127.0.0.1", 9))
"""
    assert answers(folder, body) == ["EACCES", "EACCES"]


@needs(5)
def test_a_readable_device_takes_no_ioctl(folder: Path) -> None:
    body = """
for device in ("/dev/zero", "/dev/null"):
    attempt(fcntl.ioctl, os.open(device, os.O_RDONLY), 0x5401, bytes(64))
"""
    restrict = RESTRICT.replace('["/usr"', '["/dev/zero", "/usr"')
    # The writable one reaches the driver, which knows no terminals.
    assert answers(folder, body, restrict) == ["EACCES", "ENOTTY"]


@needs(6)
def test_abstract_sockets_outside_are_closed_and_own_ones_open(folder: Path) -> None:
    name = f"\0divingbell-test-{os.getpid()}"
    body = f"""
attempt(socket.socket(socket.AF_UNIX).connect, {name!r})
own = socket.socket(socket.AF_UNIX); own.bind({name + "-own"!r}); own.listen()
attempt(socket.socket(socket.AF_UNIX).connect, {name + "-own"!r})
"""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        assert answers(folder, body) == ["EPERM", "ok"]


@needs(6)
def test_signals_reach_own_children_and_no_one_outside(folder: Path) -> None:
    body = """
attempt(os.kill, os.getppid(), 0)
child = os.fork()
if child == 0:
    signal.pause()
attempt(os.kill, child, signal.SIGKILL)
assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
    assert answers(folder, body) == ["EPERM", "ok"]


@needs(1)
def test_children_inherit_the_confinement(folder: Path) -> None:
    body = """
print(subprocess.run(["/bin/cat", f"{folder}/outside/file"], capture_output=True).returncode)
print(subprocess.run(["/bin/cat", f"{folder}/read/file"], capture_output=True).stdout.decode())
"""
    assert answers(folder, body) == ["1", "content"]


@needs(1)
def test_a_path_that_can_not_be_opened_is_an_error_and_not_skipped(folder: Path) -> None:
    body = 'attempt(landlock.restrict, [f"{folder}/read-file/below"], [])\nattempt(os.listdir, "/")'
    assert answers(folder, body, restrict="") == ["ENOTDIR", "ok"]


@needs(1)
def test_no_descriptor_is_left_behind(folder: Path) -> None:
    before = (
        "before = len(os.listdir('/proc/self/fd'))\nfds = os.open('/proc/self/fd', os.O_RDONLY)\n"
    )
    body = "print(len(os.listdir(fds)) - before)"
    restrict = RESTRICT.replace('["/usr"', '["/proc", "/usr"')
    # One for `fds` itself.
    assert answers(folder, body, restrict=before + restrict) == ["1"]


def test_a_kernel_without_landlock_is_told_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(landlock, "_call", absent)
    assert landlock.abi() == 0
    assert landlock.restrict(["/usr"], ["/tmp"]) == 0


def test_any_other_answer_to_the_version_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EINVAL, "unexpected")

    monkeypatch.setattr(landlock, "_call", broken)
    with pytest.raises(OSError, match="unexpected"):
        landlock.abi()


def test_landlock_hidden_by_a_filter_counts_as_absent(folder: Path) -> None:
    body = """
deny = frozenset({"landlock_create_ruleset"})
seccomp.install(seccomp.build(os.uname().machine, deny=deny))
print(landlock.abi(), landlock.restrict(["/usr"], []))
"""
    assert answers(folder, body, restrict="") == ["0", "0"]
