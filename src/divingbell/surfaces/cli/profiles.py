"""`divingbell profile`: the profiles that are kept on this machine, and how to clear them up."""

from divingbell.errors import ConfigError
from divingbell.escapes import one_line
from divingbell.host import kept_profiles
from divingbell.host.holding import InUse
from divingbell.host.kept_profiles import Kept
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import size
from divingbell.surfaces.cli.terminal.notes import tell


def show(settings: Settings) -> int:
    """List what there is."""
    found = kept_profiles.all_kept(settings.packages)
    for kept in found:
        print(one_line("  ".join([kept.path.name, size(kept.size()), *_about(kept)])))
    if not any(kept.is_current for kept in found):
        tell("there is none for these settings yet: the first session prepares it")
    return exit_status.OK


def prune(settings: Settings, *, days: int) -> int:
    """Remove those that were not used for so many days.

    Raises:
        ConfigError: that is no number of days.
    """
    if days < 0:
        raise ConfigError("--days must be 0 or more")
    kept_profiles.clear_up(tell)
    for kept in kept_profiles.all_kept(settings.packages):
        if kept.is_current:
            tell(f"{kept.path.name} was kept: it is the one for these settings")
        elif kept.days_unused < days:
            tell(f"{kept.path.name} was kept: {_last_used(kept)} (see --days)")
        else:
            _remove(kept)
    return exit_status.OK


def _remove(kept: Kept) -> None:
    took = size(kept.size())
    try:
        kept_profiles.remove(kept, tell)
    except InUse:
        tell(f"{kept.path.name} was kept: a Divingbell that runs uses it")
    else:
        print(f"removed {kept.path}  {took}")


def _about(kept: Kept) -> list[str]:
    about = [f"Python {kept.python}"]
    if kept.requirements:
        about.append("with " + ", ".join(kept.requirements))
    about.append(_last_used(kept))
    if kept.is_current:
        about.append("current")
    if kept.in_use():
        about.append("in use")
    return about


def _last_used(kept: Kept) -> str:
    days = kept.days_unused
    when = "today" if days == 0 else "yesterday" if days == 1 else f"{days} days ago"
    return f"last used {when}"
