"""The description of a container in the form of the Open Container Initiative."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from divingbell.models import Limits
from divingbell.sandbox.contained.command import CAPABILITIES, COMMAND, EXPENDABLE, PART_OF_DISK
from divingbell_inside import layout

VERSION = "1.0.2"
_CAPABILITY_SETS = ("bounding", "effective", "permitted")
_NAMESPACES = ("pid", "network", "ipc", "uts", "mount")


def _tmpfs(target: str, size: int, mode: str, *options: str) -> dict[str, Any]:
    return {
        "destination": target,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "nodev", f"size={size}", f"mode={mode}", *options],
    }


def _shown(target: str, source: str | Path) -> dict[str, Any]:
    return {
        "destination": target,
        "type": "bind",
        "source": str(source),
        "options": ["rbind", "ro", "nosuid", "nodev"],
    }


def describe(
    root: Path, socket_folder: Path, token: str, limits: Limits, shown: Mapping[str, str | Path]
) -> dict[str, Any]:
    """Return the content of config.json; `shown` is path inside = path outside, read-only."""
    owner = (f"uid={layout.UID}", f"gid={layout.UID}")
    part = limits.disk // PART_OF_DISK
    environment = {**layout.GVISOR_ENVIRONMENT, layout.TOKEN: token}
    return {
        "ociVersion": VERSION,
        "root": {"path": str(root), "readonly": True},
        "hostname": layout.HOSTNAME,
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(COMMAND),
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(_CAPABILITY_SETS, CAPABILITIES),
            "noNewPrivileges": True,
            "oomScoreAdj": EXPENDABLE,
            "rlimits": [
                {"type": "RLIMIT_NOFILE", "hard": limits.open_files, "soft": limits.open_files},
                {"type": "RLIMIT_CORE", "hard": 0, "soft": 0},
            ],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            _tmpfs("/dev", 1 << 16, "755"),
            _tmpfs("/sys", 1 << 12, "555", "ro"),
            _tmpfs("/tmp", limits.disk, "1777"),
            _tmpfs(layout.WORKSPACE, limits.disk, "700", *owner),
            _tmpfs(layout.HOME, part, "700", *owner),
            _tmpfs("/dev/shm", part, "1777"),
            _shown(layout.SOCKET_FOLDER, socket_folder),
            *(_shown(inside, outside) for inside, outside in shown.items()),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in _NAMESPACES]},
    }


def write(folder: Path, description: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.touch(0o600)  # the token is in it
    path.write_text(json.dumps(description))
