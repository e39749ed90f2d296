"""Profiles: the virtual environments that sandboxes see.

A profile holds a locked set of packages (`profiles/default.txt`) and what the configuration
adds to it. It is prepared once, named by a hash of all that went into it, and never changed
afterwards: something else asked for is another profile beside it.

Packages are strangers' code. Nothing of them runs here: an environment that has any in it is
never started outside of a sandbox, because a .pth file or a pyvenv.cfg of theirs would be obeyed.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import ProfileError
from divingbell.host import beside, holding, installer, owned_folder
from divingbell.host.requirements import checked

DEFAULT_LOCK = Path(__file__).parent / "profiles" / "default.txt"
FONTS = Path(__file__).parent / "profiles" / "fontlist-v3.11.0.json"
"""The list of fonts that matplotlib would make. It is the same everywhere, and making it would run
matplotlib; profiles/list_fonts.py says how it was made."""
MARKER = "divingbell-profile.json"

FORMAT = 2
"""Raised when a profile of the same content is to be made in another way."""

OLDEST_PYTHON = (3, 11)
ASK_TIMEOUT = 30.0
LOCK_PAUSE = 0.1
"""Seconds between two looks whether another process is done."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Profile:
    """A prepared virtual environment, readable by everyone, to be mounted read-only."""

    path: Path
    version: str
    """The version of its Python, such as `3.11.7`."""
    base_prefix: Path
    """The folder of the standard library; outside of `path`, and the sandbox needs both."""
    base_python: Path
    """The interpreter that `python` is a link to."""
    packages: tuple[str, ...]
    """The packages that are installed, as `name==version`."""

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        major, minor = self.version.split(".")[:2]
        return self.path / "lib" / f"python{major}.{minor}" / "site-packages"

    @property
    def matplotlib_cache(self) -> Path:
        """The folder with matplotlib's list of fonts; empty if matplotlib is not in the profile."""
        return self.path / "cache" / "matplotlib"


def home() -> Path:
    """Returns the folder for all that Divingbell keeps between runs: `DIVINGBELL_HOME`,
    else `divingbell` in the user's cache folder.

    Raises:
        ProfileError: there is neither of the two, nor a home directory.
    """
    if chosen := os.environ.get("DIVINGBELL_HOME"):
        return Path(chosen).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(cache):  # the specification says to ignore a relative one
        return Path(cache) / "divingbell"
    try:
        return Path.home() / ".cache" / "divingbell"
    except RuntimeError:
        raise ProfileError(
            "This user has no home directory: set DIVINGBELL_HOME to a folder for profiles."
        ) from None


def prepare(
    packages: Sequence[str] = (),
    *,
    python: Path | None = None,
    directory: Path | None = None,
    lock: Path = DEFAULT_LOCK,
    progress: Progress | None = None,
) -> Profile:
    """Returns the profile with what `lock` pins plus `packages`, and makes it if it is not there.

    It stays until it is released or this process ends, whatever others remove.

    Making one takes seconds to minutes and blocks: call it in a thread from async code.
    One that exists takes less than a millisecond. Nothing is ever built from source, because
    that would run a stranger's code outside of the sandbox: there must be wheels. Nor is anything
    of a wheel run, not even by the interpreter that compiles it.

    Args:
        packages: requirements such as `scikit-learn>=1.5`. They may not move what is locked.
        python: the interpreter to make it for. Default: the one that runs this.
        directory: the folder of profiles. Default: `profiles` in `home()`.
        lock: a requirements file with hashes.
        progress: is called with a line now and then.

    Raises:
        ProfileError: it can't be made; the message says why and what to do.
        NotOurs: another user could change what is in the folder.
    """
    report = progress or _silent
    requirements = _checked(packages)
    interpreter = _interpreter_of(python)
    directory = (directory or home() / "profiles").absolute()
    lock = lock.absolute()
    try:
        pinned = lock.read_bytes()
    except OSError as error:
        raise ProfileError(f"The lock file of the profile can't be read: {error}") from error
    path = directory / f"{lock.stem}-{_key(pinned, requirements, interpreter)}"
    try:
        if (profile := _load(path)) and _use(path):
            return profile
        owned_folder.make(directory)
        with locked(lock_of(path), report):
            # Whoever held the lock may have made it in the meantime.
            if _load(path) is None:
                _build(path, lock, requirements, interpreter, report)
            _use(path)
    except owned_folder.NotOurs:
        raise
    except OSError as error:
        raise ProfileError(
            f"The profile can't be kept in {directory}: {error}. "
            "Free some space or permit writing there, or set DIVINGBELL_HOME to another folder."
        ) from error
    profile = _load(path)
    if profile is None:
        raise ProfileError(f"{path} vanished while it was prepared: try again.")
    return profile


def find(packages: Sequence[str] = ()) -> Profile | None:
    """Returns the profile that `prepare` would return, None if it is not there yet.

    Raises:
        ProfileError: the packages are no requirements.
        NotOurs: another user could change what is in the folder.
    """
    key = _key(DEFAULT_LOCK.read_bytes(), _checked(packages), _interpreter_of(None))
    return _load(home() / "profiles" / f"{DEFAULT_LOCK.stem}-{key}")


@dataclass(frozen=True)
class _Interpreter:
    executable: Path
    version: str
    abi: str
    base_prefix: Path


def _interpreter_of(python: Path | None) -> _Interpreter:
    if python is None:
        # The base one: a profile must not hang on the environment that Divingbell is in.
        base = getattr(sys, "_base_executable", None) or sys.executable
        version = ".".join(map(str, sys.version_info[:3]))
        return _Interpreter(Path(base).resolve(), version, sys.abiflags, Path(sys.base_prefix))
    question = (
        "import sys; print(sys._base_executable, '.'.join(map(str, sys.version_info[:3])),"
        " sys.abiflags, sys.base_prefix, sep='\\n')"
    )
    try:
        answer = subprocess.run(
            [python, "-I", "-S", "-c", question],
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT,
            check=True,
        ).stdout.split("\n")
        executable, version, abi, base_prefix = answer[:4]
        release = tuple(int(part) for part in version.split(".")[:2])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ProfileError(
            f"{python} does not answer as a Python interpreter should ({error}): name another one."
        ) from error
    if release < OLDEST_PYTHON:
        raise ProfileError(f"{python} is Python {version}: a profile needs 3.11 or later.")
    return _Interpreter(Path(executable).resolve(), version, abi, Path(base_prefix))


def _checked(packages: Sequence[str]) -> tuple[str, ...]:
    try:
        return checked(packages)
    except ValueError as error:
        raise ProfileError(str(error)) from None


def _key(lock: bytes, requirements: tuple[str, ...], interpreter: _Interpreter) -> str:
    parts = [
        FORMAT,
        hashlib.sha256(lock).hexdigest(),
        requirements,
        interpreter.version,
        interpreter.abi,
        str(interpreter.base_prefix),
        str(interpreter.executable),
        os.uname().machine,  # a home directory may be shared between machines
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _load(path: Path) -> Profile | None:
    """Returns the finished profile at `path`, None if there is none or it is not usable."""
    try:
        if not owned_folder.check(path):
            return None
        marker = json.loads((path / MARKER).read_bytes())
        profile = Profile(
            path=path,
            version=marker["version"],
            base_prefix=Path(marker["base_prefix"]),
            base_python=Path(marker["base_python"]),
            packages=tuple(marker["packages"]),
        )
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    return profile if profile.python.exists() else None


def _use(path: Path) -> bool:
    """Keep a profile from being removed while this process lives, and note that it is used."""
    if not holding.hold(path):
        return False
    with suppress(OSError):  # where it may not be written to, it counts as old
        os.utime(lock_of(path))  # nothing in the profile itself is changed: images are made of it
    return True


def release(profile: Profile) -> None:
    """Let go of a profile that `prepare` has returned."""
    holding.release(profile.path)


def lock_of(path: Path) -> Path:
    """Return the file that is locked while the profile is made; its time of change is that of the
    profile's last use."""
    return path.with_name(f".{path.name}.lock")


def _build(
    path: Path,
    lock: Path,
    requirements: tuple[str, ...],
    interpreter: _Interpreter,
    report: Progress,
) -> None:
    """Makes the profile in a sibling folder and renames it: at `path` it is whole or not there.
    The caller holds the lock, so what lies in the way is left from a crash."""
    building = path.with_name(f".{path.name}.building")
    for leftover in (building, path):
        shutil.rmtree(leftover, ignore_errors=True)
    report(f"preparing the profile {path.name} for Python {interpreter.version}, once")
    try:
        owned_folder.make(building, 0o700)  # until it is whole, and has the modes that it should
        installer.fill(building, interpreter.executable, lock, requirements, report)
        _lay_out_fonts(building)
        _finish(building, interpreter, requirements)
        building.rename(path)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    report(f"prepared the profile {path.name}")


def _lay_out_fonts(building: Path) -> None:
    cache = building / "cache" / "matplotlib"
    cache.mkdir(parents=True, exist_ok=True)
    if any(building.glob("lib/python*/site-packages/matplotlib")):
        shutil.copy(FONTS, cache)


def _finish(building: Path, interpreter: _Interpreter, requirements: tuple[str, ...]) -> None:
    [site_packages] = building.glob("lib/python*/site-packages")
    if not any(site_packages.rglob("*.pyc")):
        # Imports would take two to four times as long, in every zygote.
        raise ProfileError("The profile was installed without bytecode: please report this.")
    installed = [
        "==".join(folder.name.removesuffix(".dist-info").rsplit("-", 1)).replace("_", "-")
        for folder in site_packages.glob("*.dist-info")
    ]
    marker = {
        "version": interpreter.version,
        "base_prefix": str(interpreter.base_prefix),
        "base_python": str(interpreter.executable),
        "packages": sorted(installed),
        "requirements": requirements,
    }
    (building / MARKER).write_text(json.dumps(marker, indent=1))
    _make_readable(building)


def _make_readable(folder: Path) -> None:
    """Let everyone read the profile, and nobody write to it.

    Files come with the modes they have in uv's cache, which another umask may have made.
    Sessions run under a user of their own and must read, and no one else may write."""
    for parent, _, files in os.walk(folder, topdown=False):  # what is around it opens last
        for path in (*(os.path.join(parent, name) for name in files), parent):
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                os.chmod(path, 0o755 if mode & 0o100 else 0o644)


@contextmanager
def locked(path: Path, report: Progress) -> Iterator[None]:
    """Hold the lock file; another process that makes the same is waited for."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that prepares the same profile")
            _wait_for(descriptor)
        yield
    finally:
        # Said outright: a process forked meanwhile holds the descriptor, and so the lock, too.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _wait_for(descriptor: int) -> None:
    """Take the lock once it is free. Asked for again and again, so that it can be called off."""
    while True:
        beside.check()
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOCK_PAUSE)


def _silent(line: str) -> None:
    pass
