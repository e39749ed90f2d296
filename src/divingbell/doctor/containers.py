"""What the walls beside the local backend find on this machine: Docker, gVisor, the image."""

import contextlib
from dataclasses import replace

from divingbell.errors import DivingbellError
from divingbell.host import cgroups, profile
from divingbell.host.finding import Finding
from divingbell.settings import config
from divingbell.settings.config import Settings

HAVE_CGROUPS = (
    "as an ordinary user, run `systemd-run --user --scope -p Delegate=yes divingbell …`; "
    "in a container, start it with `--cgroupns=private` and a writable /sys/fs/cgroup"
)
_FOR_WALLS = {
    "docker": ("docker", "docker-runsc"),
    "gvisor": ("gvisor",),
    "image": ("docker", "docker-runsc", "gvisor"),
    "restore": ("gvisor",),
}
"""What only some walls need."""


def weighed(finding: Finding, walls: str) -> Finding:
    """What the chosen walls do without is no fault of the machine."""
    needed_by = _FOR_WALLS.get(finding.name, (walls,))
    if finding.state == "ok" or walls in (*needed_by, "auto"):
        return finding
    return replace(finding, state="unused", detail=f"{finding.detail}; {walls} does without")


def docker(settings: Settings | None = None) -> Finding:
    """The daemon: there, allowed, and able to limit what a container uses."""
    from divingbell.sandbox.docker import daemon

    try:
        with contextlib.closing(daemon.connect()) as client:
            info = daemon.check(client, "runc")
    except daemon.NoDocker as error:
        return Finding("docker", "missing", error.detail, error.advice)
    except DivingbellError as error:
        return Finding("docker", "warn", str(error), "docker info")
    detail = f"daemon {info.get('ServerVersion')}, cgroup v{info.get('CgroupVersion') or 1}"
    if "runsc" in info.get("Runtimes", {}):
        return Finding("docker", "ok", f"{detail}, with runc and runsc")
    return Finding(
        "docker",
        "missing" if settings and settings.walls == "docker-runsc" else "ok",
        f"{detail}, with runc; gVisor's runsc is not among its runtimes",
        daemon.ADD_RUNSC,
    )


def runsc(settings: Settings | None) -> Finding:
    """gVisor without Docker; it can limit sessions by control groups only."""
    from divingbell.sandbox.gvisor import runsc

    try:
        found = runsc.find(settings.platform if settings else "auto")
    except runsc.NoRunsc as error:
        return Finding("gvisor", "missing", error.detail, error.advice)
    detail = f"runsc {found.version}, platform {found.platform}"
    try:
        cgroups.find().close()
    except (cgroups.NoCgroups, OSError) as reason:
        return Finding(
            "gvisor", "missing", f"{detail}, but no control groups: {reason}", HAVE_CGROUPS
        )
    return Finding("gvisor", "ok", detail)


def image(settings: Settings | None) -> Finding:
    """The root file system of containers."""
    from divingbell.sandbox.contained import root

    try:
        wanted = (settings or config.load()).packages
        prepared = profile.find(wanted)
        current = root.find(prepared) if prepared else None
    except DivingbellError as error:
        return Finding("image", "warn", str(error), "correct the settings, then run this again")
    stale = sum(state == "stale" for _, state in root.listed(prepared))
    if current is not None and stale:
        detail = f"{current.version}, current; stale ones that take up space: {stale}"
        return Finding("image", "ok", detail, "divingbell image prune")
    if current is not None:
        return Finding("image", "ok", f"{current.version}, current")
    there = "the one that is there is stale" if stale else "not made yet"
    return Finding("image", "warn", f"{there} (for docker and gvisor)", "divingbell image build")


def restore(settings: Settings | None) -> Finding:
    """Whether sessions of the gvisor backend start from a checkpoint: what its own trial said."""
    from divingbell.sandbox.contained import root
    from divingbell.sandbox.gvisor import checkpoint, runsc

    name = "restore"
    try:
        settings = settings or config.load()
        program = runsc.find(settings.platform)
        prepared = profile.find(settings.packages)
    except runsc.NoRunsc:
        return Finding(name, "missing", "not tried: gVisor can't be used", "see above")
    except DivingbellError as error:
        return Finding(name, "warn", str(error), "correct the settings, then run this again")
    image = root.find(prepared) if prepared else None
    tried = checkpoint.every(image, program) if image else []
    if not tried:
        return Finding(
            name,
            "warn",
            "not tried yet: the first start of the gvisor backend makes a checkpoint",
            "divingbell exec --backend gvisor 1",
        )
    if refusal := tried[0].refusal:
        return Finding(
            name,
            "warn",
            f"runsc {program.version} could not: {refusal}; sessions of the gvisor backend "
            "start cold, or from the pool",
            "`divingbell image prune` has it tried again at the next start",
        )
    return Finding(name, "ok", f"gvisor sessions start from a checkpoint, {tried[0].path.name}")
