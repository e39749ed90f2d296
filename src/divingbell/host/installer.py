"""The installer: fills a virtual environment by uv, and runs nothing of what it puts there."""

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import ProfileError
from divingbell.host import beside, owned_folder

LINES_OF_FAILURE = 15
CERTIFICATES = (
    "\nIf your network has certificates of its own: set SSL_CERT_FILE or UV_SYSTEM_CERTS=1 (in an "
    "MCP client's list, in the `env` of the entry), or run `divingbell exec 1` once at a terminal."
)
_UV_SOURCES = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_TORCH_BACKEND",
    "UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_HTTP_",
    "UV_REQUEST_TIMEOUT", "UV_OFFLINE", "UV_CONCURRENT_", "UV_CACHE_DIR", "UV_NO_CACHE",
    "UV_CONFIG_FILE", "UV_EXCLUDE_NEWER",
)  # fmt: skip
# What does not compile is left to fail where it is imported.
_COMPILE = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2, workers=0)"


def fill(
    building: Path,
    python: Path,
    lock: Path,
    requirements: Sequence[str],
    report: Callable[[str], None],
) -> None:
    """Make an environment of `python` in an empty folder, with what `lock` pins and what is
    asked for beside it, and compiles it.

    Raises:
        ProfileError: it did not work; the message has the words of the command that failed.
        NotOurs: another user could change what uv has kept for later.
    """
    run = _Runner(building.parent, report)
    uv = [_find_uv(), "--no-config"]  # a file in some folder may not say what is installed
    _look_at_cache(uv, building.parent)
    run(
        "The virtual environment can't be made",
        [*uv, "venv", "--relocatable", "--no-project"],
        ["--python", python, building],
    )
    # All at once: uv asks the interpreter of the environment, which may have no packages yet.
    # Beside others, too, each hash of the lock is verified. A copy, because a hard link into uv's
    # cache would change with the cache.
    install = [*uv, "pip", "install", "--only-binary", ":all:", "--link-mode", "copy"]
    install += ["--no-compile-bytecode", "--python", str(building / "bin" / "python")]
    failure = "The packages of the profile can't be installed"
    if requirements:
        failure = f"The packages {', '.join(requirements)} can't be added to the profile"
    hashes = "--verify-hashes" if requirements else "--require-hashes"
    run(failure, install, [hashes, "-r", lock, "--", *requirements])
    # By the interpreter that lies outside, and without `site`: the one of the environment obeys a
    # pyvenv.cfg that a package has brought, and then whatever .pth files say.
    report("the profile: compiling its packages")
    compiling: list[str | Path] = [python, "-I", "-S", "-c", _COMPILE]
    run("The packages of the profile can't be compiled", compiling, [building / "lib"])


def _find_uv() -> str:
    import uv

    try:
        return uv.find_uv_bin()
    except FileNotFoundError as error:
        raise ProfileError(
            "The uv command that prepares profiles is missing: pip install --force-reinstall uv"
        ) from error


def _look_at_cache(uv: Sequence[str], folder: Path) -> None:
    """Check that nobody else may write to uv's cache, out of which it installs."""
    asked = subprocess.run(
        [*uv, "cache", "dir"],
        cwd=folder,
        env=_clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if kept := asked.stdout.strip():
        owned_folder.check(folder / kept)


@dataclass(frozen=True)
class _Runner:
    """Runs the commands that make up a profile."""

    folder: Path
    report: Callable[[str], None]

    def __call__(
        self,
        failure: str,
        command: Sequence[str | Path],
        arguments: Sequence[str | Path],
    ) -> None:
        tail: deque[str] = deque(maxlen=LINES_OF_FAILURE)
        with subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=_clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            umask=0o022,
            process_group=0,
        ) as process:
            assert process.stdout is not None
            with beside.ending(process):
                for line in process.stdout:
                    tail.append(line.rstrip())
                    # Of uv's lines the sums say how it goes: "Installed 33 packages in 2s".
                    if line.startswith(("Resolved", "Prepared", "Installed", "Bytecode")):
                        self.report(f"the profile: {line.strip()}")
        if process.returncode:
            message = "\n".join(f"  {line}" for line in tail if line)
            raise ProfileError(
                f"{failure}:\n{message}\n"
                "Check the names and the network, then try again. "
                "UV_DEFAULT_INDEX names another package index, HTTPS_PROXY a proxy."
                + (CERTIFICATES if "invalid peer certificate" in message else "")
            )


def _clean_environment() -> dict[str, str]:
    """Return the caller's environment without what changes where and how things are installed.

    Of uv's variables those stay that say where packages come from and how they are reached.
    UV_COMPILE_BYTECODE for one would start the interpreter among the packages. Of Python's,
    PYTHONDONTWRITEBYTECODE and PYTHONPYCACHEPREFIX would leave the profile without bytecode.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")
        and not name.startswith("PYTHON")
        and (not name.startswith("UV_") or name.startswith(_UV_SOURCES))
    }
    return {**kept, "NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
