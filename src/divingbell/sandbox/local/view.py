"""The part of the host that is seen inside: system libraries, the interpreter, the profile."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from divingbell.host.profile import Profile
from divingbell_inside import layout

_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM = (
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
    "/usr/share/zoneinfo", "/usr/share/fonts", "/usr/share/fontconfig", "/usr/share/locale",
    "/usr/share/i18n", "/usr/share/terminfo", "/usr/share/misc", "/usr/share/mime",
    "/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/mime.types",
)  # fmt: skip
INSIDE = Path(__file__).resolve().parents[3] / "divingbell_inside"
"""The package that runs inside, on the host."""


@dataclass(frozen=True, slots=True)
class View:
    """The plan of a root file system."""

    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"binds": self.binds, "links": self.links, "hidden": self.hidden}


def plan(profile: Profile, mounts: Mapping[str, str], servers: Path | None) -> View:
    """Return what a session with this profile and these mounts of the user's sees.

    `servers` is the folder with the wrappers of tools, where there is one.
    """
    binds: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    for name in _TOP:
        path = Path("/", name)
        if path.is_symlink():
            links.append((str(path), str(path.readlink())))
        elif path.is_dir():
            binds.append((str(path), str(path)))
    binds += [(path, path) for path in _SYSTEM if Path(path).exists()]
    hidden = _interpreter(profile, binds)
    binds.append((str(INSIDE), f"{layout.INSIDE}/divingbell_inside"))
    binds.append((str(profile.path), layout.PROFILE))
    if servers is not None:
        binds.append((str(servers), layout.SERVERS))
    binds += [(str(Path(source).resolve()), target) for target, source in mounts.items()]
    return View(tuple(binds), tuple(links), tuple(hidden))


def _interpreter(profile: Profile, binds: list[tuple[str, str]]) -> list[str]:
    """Show the interpreter that the profile was made from, where it is not the system's own.

    Returns:
        Folders to cover: what is installed beside that interpreter is not the sandbox's.
    """
    base = profile.base_prefix
    major, minor = profile.version.split(".")[:2]
    library = base / "lib" / f"python{major}.{minor}"
    if base != Path("/usr"):
        binds.append((str(library), str(library)))
        shared = (base / "lib").glob(f"libpython{major}.{minor}.so*")
        programs = {profile.base_python, profile.base_python.resolve(), *shared}
        binds += [(str(path), str(path)) for path in sorted(programs)]
    return [str(library / "site-packages")]
