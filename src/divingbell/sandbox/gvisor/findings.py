"""The state of gVisor without Docker, for `divingbell doctor`."""

from divingbell.errors import DivingbellError
from divingbell.host import cgroups, profile
from divingbell.host.finding import Finding
from divingbell.sandbox.contained import root
from divingbell.sandbox.gvisor import checkpoint
from divingbell.sandbox.gvisor import runsc as program
from divingbell.settings import config
from divingbell.settings.config import Settings


def runsc(settings: Settings | None) -> Finding:
    """Whether runsc is there; it can limit sessions by control groups only."""
    try:
        found = program.find(settings.platform if settings else "auto")
    except program.NoRunsc as error:
        return Finding("gvisor", "missing", error.detail, error.advice)
    detail = f"runsc {found.version}, platform {found.platform}"
    try:
        cgroups.find().close()
    except (cgroups.NoCgroups, OSError) as reason:
        return Finding(
            "gvisor", "missing", f"{detail}, but no control groups: {reason}", cgroups.ADVICE
        )
    return Finding("gvisor", "ok", detail)


def restore(settings: Settings | None) -> Finding:
    """Whether sessions of the gvisor backend start from a checkpoint: what its own trial said."""
    name = "restore"
    try:
        settings = settings or config.load()
        found = program.find(settings.platform)
        prepared = profile.find(settings.packages)
    except program.NoRunsc:
        return Finding(name, "missing", "not tried: gVisor can't be used", "see above")
    except DivingbellError as error:
        return Finding(name, "warn", str(error), "correct the settings, then run this again")
    image = root.find(prepared) if prepared else None
    tried = checkpoint.every(image, found) if image else []
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
            f"runsc {found.version} could not: {refusal}; sessions of the gvisor backend "
            "start cold, or from the pool",
            "`divingbell image prune` has it tried again at the next start",
        )
    return Finding(name, "ok", f"gvisor sessions start from a checkpoint, {tried[0].path.name}")
