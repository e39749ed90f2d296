"""Recording what a command does by itself, without a Divingbell that runs."""

from typing import TYPE_CHECKING

from divingbell.journal.events import JournalEvent

if TYPE_CHECKING:
    from divingbell.settings.config import Settings


async def record(event: JournalEvent, settings: "Settings") -> None:
    """Write an event to the audit log, if the settings have one.

    Raises:
        NotRecorded: it can't be written.
        ConfigError: the settings can't be used.
    """
    if settings.audit in (None, "off"):
        return
    from divingbell.audit import opening
    from divingbell.border.border import OpenBorder
    from divingbell.host.places import data_folder

    log = await opening.opened(settings, OpenBorder(), data_folder())
    try:
        await log.keep(event)
    finally:
        await log.close()
