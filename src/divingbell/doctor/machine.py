"""What this machine can do: looked at, and tried where looking does not tell.

Nothing here changes the machine. What is tried is removed again at once.
"""

import platform
import shutil
import sys
from pathlib import Path

from divingbell.doctor import containers
from divingbell.errors import DivingbellError
from divingbell.host import cgroups, kept_profiles, kernel
from divingbell.host.finding import Finding
from divingbell.settings import config
from divingbell.settings.config import Settings

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)


def examine(settings: Settings | None = None) -> list[Finding]:
    """Look at everything that matters to Divingbell, the most basic first."""
    system, *of_kernel = kernel.findings()
    found = [system, _python(), *of_kernel]
    if sys.platform == "linux":
        found.append(_cgroups(settings))
    found += [containers.docker(settings), containers.runsc(settings), _uv(), _profile(settings)]
    found += [containers.image(settings), containers.restore(settings)]
    return [containers.weighed(finding, settings.walls) for finding in found] if settings else found


def _python() -> Finding:
    detail = f"Python {platform.python_version()}"
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return Finding("python", "ok", detail)
    return Finding(
        "python",
        "warn",
        f"{detail}: 3.11 to 3.13 are tested",
        "make the environment with another: PYTHON=/path/to/python3.12 ./dev setup",
    )


def _cgroups(settings: Settings | None) -> Finding:
    name = "cgroups"
    if settings is not None and settings.cgroups == "off":
        return Finding(name, "warn", "off in the settings: rlimits are in force", _USE_CGROUPS)
    try:
        hierarchy = cgroups.find()
    except (cgroups.NoCgroups, OSError) as reason:
        return Finding(
            name,
            "warn",
            f"{reason}: rlimits are in force, which limit memory for each process",
            containers.HAVE_CGROUPS,
        )
    hierarchy.close()
    return Finding(name, "ok", f"version {hierarchy.version}, in force")


_USE_CGROUPS = 'set `cgroups = "auto"` in divingbell.toml'

# What is beside it


def _uv() -> Finding:
    beside = Path(sys.executable).parent / "uv"
    path = str(beside) if beside.exists() else shutil.which("uv")
    if path:
        return Finding("uv", "ok", path)
    return Finding(
        "uv",
        "missing",
        "it is needed to prepare profiles",
        f"run `{sys.executable} -m pip install uv`",
    )


def _profile(settings: Settings | None) -> Finding:
    name = "profile"
    try:
        kept = kept_profiles.listed((settings or config.load()).packages)
    except (DivingbellError, OSError) as error:
        return Finding(name, "warn", str(error), "correct the settings, then run this again")
    current = [each for each in kept if each.is_current]
    if not current:
        return Finding(
            name, "warn", "not prepared yet: the first session prepares it, in a minute or so"
        )
    others = len(kept) - len(current)
    detail = f"prepared in {current[0].path}"
    if others:
        return Finding(
            name,
            "ok",
            f"{detail}; others that take up space: {others}",
            "divingbell profile list; divingbell profile prune",
        )
    return Finding(name, "ok", detail)
