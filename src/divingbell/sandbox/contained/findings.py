"""The state of the root file system of containers, for `divingbell doctor`."""

from divingbell.errors import DivingbellError
from divingbell.host import profile
from divingbell.host.finding import Finding
from divingbell.sandbox.contained import root
from divingbell.settings import config
from divingbell.settings.config import Settings


def image(settings: Settings | None) -> Finding:
    """Whether the root file system of containers is there, and current."""
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
    return Finding("image", "warn", f"{there} (containers need it)", "divingbell image build")
