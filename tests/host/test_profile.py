"""Profiles are made with the real uv, of small wheels that are written here: no network."""

import base64
import contextlib
import fcntl
import functools
import hashlib
import http.server
import json
import multiprocessing
import os
import shutil
import ssl
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from divingbell import Session
from divingbell.errors import ProfileError
from divingbell.host.owned_folder import NotOurs
from divingbell.host.profile import DEFAULT_LOCK, FONTS, MARKER, Profile, home, prepare
from divingbell.promises.check.packages import write_wheel as write_trap

Prepare = Callable[..., Profile]
MAKE_CERTIFICATE = (
    "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
    "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
)  # fmt: skip


def write_wheel(folder: Path, name: str, version: str, requires: str = "") -> str:
    """Writes a wheel of one module that knows its version, and returns its digest."""
    information = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{information}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{information}/RECORD"
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text)}\n")
    files[record] = "".join(lines) + f"{record},,\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one package, `pearl`; the index also has a newer one, and more."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    digest = write_wheel(wheels, "pearl", "1.0")
    write_wheel(wheels, "pearl", "2.0")
    write_wheel(wheels, "oyster", "1.0", requires="pearl")
    write_wheel(wheels, "clam", "1.0")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    path = tmp_path / "small.txt"
    path.write_text(f"pearl==1.0 --hash=sha256:{digest}\n")
    return path


@pytest.fixture
def prepare_small(lock: Path, tmp_path: Path) -> Prepare:
    def prepare_it(*packages: str, **more: object) -> Profile:
        return prepare(packages, lock=lock, directory=tmp_path / "profiles", **more)  # type: ignore[arg-type]

    return prepare_it


def output_of(profile: Profile, code: str) -> str:
    command = [profile.python, "-I", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_profile_is_an_environment_of_its_own_with_what_the_lock_pins(
    prepare_small: Prepare,
) -> None:
    profile = prepare_small()
    assert output_of(profile, "import pearl; print(pearl.version)") == "1.0"
    assert profile.packages == ("pearl==1.0",)
    assert output_of(profile, "import sys; print(sys.prefix)") == str(profile.path)
    assert output_of(profile, "import sys; print(sys.base_prefix)") == str(profile.base_prefix)
    assert output_of(profile, "import platform; print(platform.python_version())") == (
        profile.version
    )
    assert output_of(profile, "import pearl; print(pearl.__file__)") == str(
        profile.site_packages / "pearl.py"
    )
    assert profile.python.resolve() == profile.base_python


def test_bytecode_is_compiled_whatever_the_environment_says(
    prepare_small: Prepare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    cached = prepare_small().site_packages / "__pycache__"
    assert [path.name for path in cached.glob("pearl.*")] == [
        f"pearl.{sys.implementation.cache_tag}.pyc"
    ]


def test_a_profile_that_exists_is_found_at_once_and_without_a_process(
    prepare_small: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare_small()

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    durations = []
    for _ in range(10):
        start = time.perf_counter()
        assert prepare_small() == made
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.005


def test_the_same_interpreter_gives_the_same_profile_named_or_not(
    prepare_small: Prepare,
) -> None:
    assert prepare_small(python=Path(sys.executable)) == prepare_small()


def test_extra_packages_make_another_profile_in_any_order(prepare_small: Prepare) -> None:
    plain = prepare_small()
    more = prepare_small("oyster", "clam==1.0")
    assert more.packages == ("clam==1.0", "oyster==1.0", "pearl==1.0")
    assert plain.path != more.path
    assert prepare_small("clam==1.0", " oyster", "oyster") == more
    assert any((more.site_packages / "__pycache__").glob("oyster.*.pyc"))


@pytest.mark.parametrize("package", ["pearl==2.0", "nowhere-to-be-found"])
def test_an_extra_package_that_does_not_fit_is_named_with_the_reason(
    prepare_small: Prepare, package: str, tmp_path: Path
) -> None:
    with pytest.raises(ProfileError) as caught:
        prepare_small(package)
    message = str(caught.value)
    assert package in message
    assert "No solution found" in message
    assert "try again" in message
    assert list((tmp_path / "profiles").glob("*small*")) == [
        *(tmp_path / "profiles").glob(".small-*.lock")
    ]


@pytest.mark.parametrize("package", ["", "--index-url=https://example.com", "-e .", "a\nb"])
def test_what_is_not_a_requirement_is_refused(prepare_small: Prepare, package: str) -> None:
    with pytest.raises(ProfileError, match="is not a requirement"):
        prepare_small(package)


def test_a_package_that_is_not_what_was_locked_is_refused(
    prepare_small: Prepare, lock: Path
) -> None:
    lock.write_text(f"pearl==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ProfileError, match=r"(?i)hash"):
        prepare_small()


def test_a_lock_without_hashes_is_refused(prepare_small: Prepare, lock: Path) -> None:
    lock.write_text("pearl==1.0\n")
    with pytest.raises(ProfileError, match=r"(?i)hash"):
        prepare_small()


def test_nothing_is_built_from_source(
    prepare_small: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "trap"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "backend.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\n")
    with pytest.raises(ProfileError, match="is not a requirement"):
        prepare_small(str(source))
    monkeypatch.setattr(
        "divingbell.host.profile.checked", tuple
    )  # and if it were one, it would not be built
    with pytest.raises(ProfileError, match=r"(?i)build"):
        prepare_small(str(source))
    assert not (tmp_path / "sprung").exists()


def test_a_wheel_runs_nothing_on_the_host(
    prepare_small: Prepare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sprung = tmp_path / "sprung"
    trap = f"import os; os.close(os.open({str(sprung)!r}, os.O_CREAT))\n"
    files = {"trap.pth": trap, "sitecustomize.py": trap, "trap.py": "version = '1.0'\n"}
    write_trap(tmp_path / "wheels", files)
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    profile = prepare_small("divingbell-trap", "oyster")
    assert profile.packages == ("divingbell-trap==1.0", "oyster==1.0", "pearl==1.0")
    assert any(profile.site_packages.glob("__pycache__/trap.*.pyc"))
    assert prepare_small("divingbell-trap", "oyster") == profile
    assert not sprung.exists()
    output_of(profile, "")  # nobody does this outside of a sandbox
    assert sprung.exists(), "the trap does not work"


def test_what_does_not_compile_is_no_obstacle(prepare_small: Prepare, tmp_path: Path) -> None:
    write_trap(tmp_path / "wheels", {"trap.py": "def\n", "coded.py": "# coding: trap\n"})
    profile = prepare_small("divingbell-trap")
    assert (profile.site_packages / "trap.py").exists()
    assert any(profile.site_packages.glob("__pycache__/pearl.*.pyc"))


def test_a_locked_package_is_verified_beside_others_too(prepare_small: Prepare, lock: Path) -> None:
    lock.write_text(f"pearl==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(ProfileError, match=r"(?i)hash"):
        prepare_small("oyster")


@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml"])
def test_settings_of_uv_that_lie_around_are_not_obeyed(
    prepare_small: Prepare, tmp_path: Path, name: str
) -> None:
    (tmp_path / "profiles").mkdir(0o755)
    for folder in (tmp_path, tmp_path / "profiles"):
        (folder / name).write_text("[this is no TOML\n")
    assert prepare_small().packages == ("pearl==1.0",)


def test_what_others_can_put_into_the_cache_of_uv_is_not_installed(
    prepare_small: Prepare, tmp_path: Path
) -> None:
    (tmp_path / "uv-cache").mkdir()
    (tmp_path / "uv-cache").chmod(0o777)
    with pytest.raises(NotOurs, match=r"uv-cache can be written to .* UV_CACHE_DIR"):
        prepare_small()
    assert not any((tmp_path / "uv-cache").iterdir())


def test_a_profile_in_a_folder_that_others_can_write_to_is_not_used(
    prepare_small: Prepare, tmp_path: Path
) -> None:
    profile = prepare_small()
    for folder in (profile.path, profile.path.parent):
        folder.chmod(0o777)
        with pytest.raises(NotOurs, match=f"chmod go-w {folder}"):
            prepare_small()
        folder.chmod(0o755)
    assert prepare_small() == profile


def test_everyone_may_read_it_and_only_the_owner_write_whatever_the_umask(
    prepare_small: Prepare,
) -> None:
    before = os.umask(0o077)
    try:
        profile = prepare_small("clam")
    finally:
        os.umask(before)
    for path in (profile.path.parent, profile.path, *profile.path.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            assert mode & 0o444 == 0o444, path
            assert mode & 0o022 == 0, path
            assert not stat.S_ISDIR(mode) or mode & 0o111 == 0o111, path


def test_what_a_crash_left_is_cleared_away(prepare_small: Prepare) -> None:
    path = prepare_small().path
    shutil.rmtree(path)
    building = path.with_name(f".{path.name}.building")
    building.mkdir()
    (building / "half").write_text("")
    assert prepare_small().path == path
    assert not (path / "half").exists()
    assert not building.exists()


@pytest.mark.parametrize("marker", ["", "[]", "{}", "\0"])
def test_a_spoilt_profile_is_made_again(prepare_small: Prepare, marker: str) -> None:
    profile = prepare_small()
    (profile.path / MARKER).write_text(marker)
    (profile.path / "spoilt").write_text("")
    assert prepare_small() == profile
    assert not (profile.path / "spoilt").exists()


def test_a_profile_works_where_it_is_moved(prepare_small: Prepare, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    prepare_small().path.rename(moved)
    command = [moved / "bin" / "python", "-c", "import pearl, sys; print(sys.prefix)"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(moved)


def lines_while_preparing(lock: Path, directory: Path) -> list[str]:
    lines: list[str] = []
    prepare(lock=lock, directory=directory, progress=lines.append)
    return lines


def test_of_two_processes_one_prepares_and_the_other_waits_for_it(
    lock: Path, tmp_path: Path
) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        calls = [pool.submit(lines_while_preparing, lock, tmp_path / "both") for _ in range(2)]
        lines = [call.result(timeout=60) for call in calls]
    assert sum(any("preparing the profile" in line for line in each) for each in lines) == 1


def test_a_waiting_process_says_so_and_uses_what_was_made(prepare_small: Prepare) -> None:
    made = prepare_small()
    aside = made.path.with_name("aside")
    made.path.rename(aside)
    lines: list[str] = []
    with made.path.with_name(f".{made.path.name}.lock").open("w") as other_process:
        fcntl.flock(other_process, fcntl.LOCK_EX)

        def it_finishes(line: str) -> None:
            lines.append(line)
            aside.rename(made.path)
            fcntl.flock(other_process, fcntl.LOCK_UN)

        assert prepare_small(progress=it_finishes) == made
    assert lines == ["waiting for another process that prepares the same profile"]


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/true", "/bin/false"])
def test_what_is_not_an_interpreter_is_refused(prepare_small: Prepare, python: str) -> None:
    with pytest.raises(ProfileError, match="name another one"):
        prepare_small(python=Path(python))


def test_a_folder_that_can_not_be_written_is_named_with_a_way_out(
    lock: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfileError, match="DIVINGBELL_HOME"):
        prepare(lock=lock, directory=tmp_path / "file" / "profiles")


def test_a_lock_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"missing\.txt"):
        prepare(lock=tmp_path / "missing.txt", directory=tmp_path)


def test_home_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/diver")
    monkeypatch.delenv("DIVINGBELL_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert home() == Path("/home/diver/.cache/divingbell")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert home() == Path("/home/diver/.cache/divingbell")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert home() == Path("/cache/divingbell")
    monkeypatch.setenv("DIVINGBELL_HOME", "/srv/bell")
    assert home() == Path("/srv/bell")


def test_the_default_lock_names_no_address_and_no_pyarrow() -> None:
    text = DEFAULT_LOCK.read_text()
    assert "://" not in text
    assert "pyarrow" not in text


def test_the_default_profile_plots_with_the_fonts_it_brings() -> None:
    profile = prepare()
    [fonts] = profile.matplotlib_cache.glob("fontlist-*.json")
    entries = json.loads(fonts.read_text())
    files = [Path(entry["fname"]) for entry in entries["ttflist"] + entries["afmlist"]]
    assert files
    assert not any(path.is_absolute() for path in files)
    names = {package.split("==")[0] for package in profile.packages}
    assert names >= {"ipython", "pandas", "matplotlib", "duckdb", "openpyxl", "cloudpickle"}


async def test_the_list_of_fonts_is_the_one_that_matplotlib_would_make(session: Session) -> None:
    listing = FONTS.with_name("list_fonts.py")
    assert (await session.run(listing.read_text())).status == "ok"
    made = await session.files.get(FONTS.name)
    assert json.loads(made) == json.loads(FONTS.read_text()), f"{listing} says how to renew it"


def test_a_certificate_of_ones_own_network_is_spoken_of(
    prepare_small: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index_of_a_stranger(tmp_path) as url:
        monkeypatch.delenv("UV_OFFLINE")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        monkeypatch.setenv("UV_DEFAULT_INDEX", url)
        with pytest.raises(ProfileError, match="SSL_CERT_FILE or UV_SYSTEM_CERTS=1") as caught:
            prepare_small("barnacle")
        assert "invalid peer certificate" in str(caught.value)
        # What is advised is enough: the index is reached, and has no such package.
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with pytest.raises(ProfileError, match="barnacle was not found") as caught:
            prepare_small("barnacle")
        assert "SSL_CERT_FILE" not in str(caught.value)


@contextlib.contextmanager
def index_of_a_stranger(folder: Path) -> Iterator[str]:
    """An empty index behind a certificate that nobody has signed."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [*MAKE_CERTIFICATE, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    (folder / "index").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder / "index")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"https://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            serving.join()
