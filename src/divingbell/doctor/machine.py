"""The state of this machine: looked at, and tried where looking does not tell.

Nothing here changes the machine. What is tried is removed again at once.
"""

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from divingbell.errors import DivingbellError, SandboxUnavailable
from divingbell.host import cgroups, kept_profiles, kernel
from divingbell.host.finding import Finding
from divingbell.sandbox import registry
from divingbell.settings import config
from divingbell.settings.config import Settings


def examine(settings: Settings | None = None) -> list[Finding]:
    """Look at everything that matters to Divingbell, the most basic first.

    What the backend of the settings does without is no fault of the machine.
    """
    system, *of_kernel = kernel.findings()
    found = [system, _python(), *of_kernel]
    if sys.platform == "linux":
        found.append(_cgroups(settings))
    return [*found, _uv(), _profile(settings), *_of_backends(settings)]


def _of_backends(settings: Settings | None) -> Iterator[Finding]:
    """Look at the needs of the backends: each thing once, also where several need it."""
    chosen = settings.backend if settings else registry.AUTO
    rows = registry.every() if chosen == registry.AUTO else [*registry.OURS]
    if chosen not in (registry.AUTO, registry.RAY, *(row.name for row in rows)):
        rows.append(registry.find(chosen))
    looked_at: dict[str, list[registry.Row]] = {}
    for row in rows:
        for reference in row.findings:
            looked_at.setdefault(reference, []).append(row)
    for reference, needing in looked_at.items():
        is_needed = chosen in (registry.AUTO, *(row.name for row in needing))
        finding = _look(needing[0], reference, settings)
        if finding.state != "ok" and not is_needed:
            detail = f"{finding.detail}; {chosen} does without"
            finding = replace(finding, state="unused", detail=detail)
        yield finding


def _look(row: registry.Row, reference: str, settings: Settings | None) -> Finding:
    try:
        finding: Finding = registry.load(row, reference)(settings)
    except SandboxUnavailable as error:
        return Finding(row.name, "missing", str(error), row.install_command)
    return finding


def _python() -> Finding:
    return Finding("python", "ok", f"Python {platform.python_version()}")  # others can't import us


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
            cgroups.ADVICE,
        )
    hierarchy.close()
    return Finding(name, "ok", f"version {hierarchy.version}, in force")


_USE_CGROUPS = 'set `cgroups = "auto"` in divingbell.toml'

# Beside the kernel


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
        kept = kept_profiles.all_kept((settings or config.load()).packages)
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
