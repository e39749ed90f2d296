"""`divingbell audit`: the audit log, read, verified and exported. It changes nothing in it."""

import json
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.amounts import amount
from divingbell.audit import heads, ocsf, opening, reading, signing, verifying
from divingbell.audit.reading import Record, Wanted
from divingbell.errors import ConfigError, InvalidInput
from divingbell.escapes import clean, one_line
from divingbell.host.places import data_folder
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.audit_options import AuditFilter

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

MOST_LINES = 100_000
PAUSE = 0.5
"""Seconds between two looks, while records are followed."""
_TOLD = ("tool", "skill", "server", "outcome", "status", "answer", "code", "reason")


def tail(settings: "Settings", count: int, *, follow: bool, as_json: bool) -> int:
    """Print the newest records; with `follow`, those that come until it is interrupted.

    Raises:
        ConfigError: the log can't be read.
        InvalidInput: there can't be so many.
    """
    if not 1 <= count <= MOST_LINES:
        raise InvalidInput(f"--lines is a number from 1 to {MOST_LINES:,}, not {count}")
    folder = _folder(settings)
    seen: dict[str, int] = {}
    _print(deque(_unseen(folder, seen), maxlen=count), as_json)
    while follow:
        time.sleep(PAUSE)
        _print(_unseen(folder, seen), as_json)
    return exit_status.OK


def _unseen(folder: Path, seen: dict[str, int]) -> Iterable[Record]:
    """Yield the records that came since the last time: a chain only grows at its end."""
    for record in reading.records(folder):
        chain, number = record["chain"], record["number"]
        if number > seen.get(chain, 0):
            seen[chain] = number
            yield record


def search(settings: "Settings", chosen: AuditFilter, *, as_json: bool) -> int:
    """Print the records that fit.

    Raises:
        ConfigError: the log can't be read, or the filter can't be meant.
    """
    _print(filter(_wanted(settings, chosen).has, reading.records(_folder(settings))), as_json)
    return exit_status.OK


def export(settings: "Settings", chosen: AuditFilter, *, as_ocsf: bool) -> int:
    """Print the records that fit as lines of JSON. Raises: as `search`."""
    wanted = _wanted(settings, chosen)
    for record in filter(wanted.has, reading.records(_folder(settings))):
        print(json.dumps(ocsf.event_of(record) if as_ocsf else record, ensure_ascii=False))
    return exit_status.OK


def verify(settings: "Settings", public: str, *, as_json: bool) -> int:
    """Print what is found of each part of the log; return the exit status.

    Raises:
        ConfigError: it can't be read, or there is no key to verify it with.
    """
    places = opening.places_of(settings.audit_log, data_folder())
    public = signing.check_public(public) if public else _key(settings).public
    found = verifying.verify(places.log, places.heads, public)
    if as_json:
        print(json.dumps({"key": public, "chains": [asdict(each) for each in found]}, indent=2))
    else:
        _print_verified(found, places)
    bad = any(each.verdict in verifying.BAD for each in found)
    return exit_status.FAILED if bad else exit_status.OK


def head(settings: "Settings", *, as_json: bool) -> int:
    """Print the public key and the newest head of each part. Raises: as `verify`."""
    places = opening.places_of(settings.audit_log, data_folder())
    public = _key(settings).public
    found = [heads.newest(places.heads, name, public)[0] for name in heads.chains(places.heads)]
    known = [each for each in found if each is not None]
    if as_json:
        print(json.dumps({"key": public, "heads": [asdict(each) for each in known]}, indent=2))
        return exit_status.OK
    print(f"key {public}")
    for each in known:
        print(f"{each.chain}  {each.link.number:>8,}  {each.link.hash}  {each.at}")
    return exit_status.OK


def _folder(settings: "Settings") -> Path:
    return opening.places_of(settings.audit_log, data_folder()).log


def _key(settings: "Settings") -> signing.Key:
    named = settings.audit_log.key_file
    return signing.load_key(Path(named) if named else None, data_folder(), tell=None)


def _wanted(settings: "Settings", chosen: AuditFilter) -> Wanted:
    since = reading.moment(chosen.since) if chosen.since else ""
    tags = _tags(settings, chosen.user, chosen.session)
    return Wanted(**(asdict(chosen) | {"since": since, "tags": tags}))


def _tags(settings: "Settings", *names: str) -> tuple[str, ...]:
    """Return what stands for names that are personal; only who has the key can tell."""
    try:
        return tuple(_key(settings).tag(name) for name in names if name)
    except ConfigError:
        return ()


def _print(records: Iterable[Record], as_json: bool) -> None:
    for record in records:
        print(json.dumps(record, ensure_ascii=False) if as_json else _line(record), flush=True)


def _line(record: Record) -> str:
    """Return a record in one line, for a person."""
    where = [record.get("session"), *(record.get(name) for name in ("cell", "call"))]
    told: list[Any] = [record.get(name) for name in _TOLD]
    said = [_text(each) for each in (*told, record.get("arguments"))]
    whose = record.get("user") or "–"
    place = " ".join(str(each) for each in where if each is not None)
    words = [str(record.get("at"))[:23], str(record.get("kind")), str(whose), place, *said]
    return one_line("  ".join(filter(None, words)))


def _text(value: Any) -> str:
    said = value.get("text") if isinstance(value, dict) else value
    return str(said) if said else ""


def _print_verified(found: list[verifying.Verified], places: opening.Places) -> None:
    for each in found:
        state = "running" if each.running else "closed" if each.closed else "not closed"
        counts = f"{amount(each.records, 'record')}, {each.proven:,} proven, {state}"
        print(clean(f"{each.chain}  {each.verdict:<8}  {counts}"))
        for note in _notes(each):
            print(clean(f"    {note}"))
    total = sum(each.records for each in found)
    print(clean(f"{amount(total, 'record')} in {amount(len(found), 'part')}, in {places.log}"))
    if not places.is_second:
        print(
            "The heads lie beside the log: whoever can cut it can cut them, too. Name another "
            "place\nwith heads in [audit_log]."
        )


def _notes(found: verifying.Verified) -> Iterable[str]:
    if found.why:
        yield found.why
    if found.clock_set_back:
        times = amount(found.clock_set_back, "time")
        yield f"the clock was set back {times}: the numbers of records say their order"
    if found.open_calls:
        calls = deque(map(str, found.open_calls), maxlen=10)
        yield (
            f"{amount(len(found.open_calls), 'call')} may have been made, and no end is recorded: "
            f"call {', '.join(calls)}"
        )
