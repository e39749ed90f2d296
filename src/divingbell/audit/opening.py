"""The opening of the audit log, as the settings say."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell import logs
from divingbell.audit.heads import Heads
from divingbell.audit.log import AuditLog
from divingbell.audit.records import Records
from divingbell.audit.screening import Screening
from divingbell.audit.segments import Segments
from divingbell.audit.signing import VARIABLE, Key, load_key
from divingbell.audit.writer import Writer
from divingbell.border.border import Border
from divingbell.border.privacy.blotter import BLOTTER
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import KINDS
from divingbell.errors import ConfigError
from divingbell.host import owned_folder
from divingbell.settings.audit import AuditLogSettings
from divingbell.settings.config import Settings

log = logs.logger("divingbell")

FOLDER_NAME = "audit"
HEADS_NAME = "heads"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of a log."""

    log: Path
    heads: Path
    is_second: bool
    """Whether the heads lie somewhere else than beside the log."""


def places_of(chosen: AuditLogSettings, home: Path) -> Places:
    """Return the folders that the settings name; `home` is the folder of what lasts."""
    folder = Path(chosen.folder) if chosen.folder else home / FOLDER_NAME
    heads = Path(chosen.heads) if chosen.heads else folder / HEADS_NAME
    return Places(folder, heads, bool(chosen.heads))


async def opened(
    settings: Settings, border: Border, home: Path, environment: Mapping[str, str] = os.environ
) -> AuditLog:
    """Return the log of these settings, which writes from now on.

    With "on" it may be that nothing can be written yet: then no tool is called until it can.

    Raises:
        ConfigError: the folder can be changed by others, the key can't be used, or what is
            required is not there.
    """
    chosen, mode = settings.audit_log, settings.audit or "off"
    places = places_of(chosen, home)
    if mode == "required":
        has_variable = bool(environment.get(VARIABLE))
        chosen.check_required(has_variable)
        key_file = None if has_variable else Path(chosen.key_file)
        await asyncio.to_thread(_check_apart, places, key_file)
    # What is told of the log below goes to another one, which must be able to read it.
    scanner = await asyncio.to_thread(BLOTTER.scanner)
    await asyncio.to_thread(_prepare, places, mode == "required")
    key = await asyncio.to_thread(_key, chosen, home, environment, mode == "required")
    segments = Segments(places.log, chosen.segment, {"key": key.public if key else None})
    heads = Heads(places.heads, segments.chain, key) if key else None
    writer = Writer(segments, heads, strict=mode == "required")
    rules = settings.privacy_rules
    fields = Fields(rules.fields, KINDS | rules.patterns.keys())
    records = Records(Screening(scanner, border, fields), key, settings.policy.bound_names)
    return AuditLog(mode, records, writer)


def _check_apart(places: Places, key_file: Path | None) -> None:
    """Refuse heads and a key that lie where the log does, whatever links lead there: who can change
    the one could change the other."""
    try:
        folder, heads = places.log.resolve(), places.heads.resolve()
        key = None if key_file is None else key_file.resolve()
    except (OSError, RuntimeError) as error:  # links that lead to each other
        raise ConfigError(f"a path in [audit_log] can't be followed: {error}") from error
    if heads.is_relative_to(folder) or folder.is_relative_to(heads):
        raise ConfigError(
            'audit = "required" needs a second place for the heads of the log, and '
            f"{places.heads} and {places.log} are one: with heads in [audit_log], name a folder "
            "outside of the log's, best on another machine"
        )
    if key is not None and (key.is_relative_to(folder) or folder.is_relative_to(key)):
        raise ConfigError(
            'audit = "required" needs a key that does not lie beside the log, and '
            f"{key_file} is in {places.log}: with key_file in [audit_log], name one elsewhere, "
            f"or set {VARIABLE}"
        )


def _prepare(places: Places, required: bool) -> None:
    """Make the folders; a place that others can change is refused in any case."""
    for folder in (places.log, places.heads):
        try:
            owned_folder.make(folder, 0o700)
        except owned_folder.NotOurs:
            raise
        except OSError as error:
            words = f"the audit log can't be kept in {folder}: {error.strerror}"
            if required:
                raise ConfigError(
                    f"{words}; make room there, or name another folder in [audit_log]"
                ) from error
            log.warning("%s; no tool is called until it can", words)


def _key(
    chosen: AuditLogSettings, home: Path, environment: Mapping[str, str], required: bool
) -> Key | None:
    named = Path(chosen.key_file) if chosen.key_file else None
    try:
        return load_key(named, home, environment)
    except ConfigError as error:
        if required or named is not None or environment.get(VARIABLE):
            raise
        log.warning("the heads of the audit log are not signed: %s", error)
        return None
