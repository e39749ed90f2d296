"""`divingbell audit`: the audit log, read, verified and exported. It changes nothing in it."""

import difflib
import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
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
    ends: reading.Ends = {}
    if not _print(deque(_unseen(folder, seen, ends), maxlen=count), as_json):
        _tell_nothing(folder)
    while follow:
        time.sleep(PAUSE)
        _print(_unseen(folder, seen, ends), as_json)
    return exit_status.OK


def _unseen(folder: Path, seen: dict[str, int], ends: reading.Ends) -> Iterable[Record]:
    """Yield the records that came since the last time: a chain only grows at its end. What is
    behind a line that is damaged is read again each time."""
    for record in reading.records(folder, ends):
        chain, number = record["chain"], record["number"]
        if number > seen.get(chain, 0):
            seen[chain] = number
            yield record


def search(settings: "Settings", chosen: AuditFilter, *, as_json: bool) -> int:
    """Print the records that fit.

    Raises:
        ConfigError: the log can't be read, or the filter can't be meant.
    """
    folder = _folder(settings)
    if not _print(filter(_wanted(settings, chosen).has, reading.records(folder)), as_json):
        _tell_nothing(folder, chosen)
    return exit_status.OK


def export(settings: "Settings", chosen: AuditFilter, *, as_ocsf: bool) -> int:
    """Print the records that fit as lines of JSON. Raises: as `search`."""
    folder, wanted = _folder(settings), _wanted(settings, chosen)
    found = filter(wanted.has, reading.records(folder))
    if not _print(map(ocsf.event_of, found) if as_ocsf else found, as_json=True):
        _tell_nothing(folder, chosen)
    return exit_status.OK


def verify(settings: "Settings", public: str, *, as_json: bool) -> int:
    """Print what is found of each part of the log; return the exit status.

    Raises:
        ConfigError: it can't be read, there is none, or no key to verify it with.
    """
    places = opening.places_of(settings.audit_log, data_folder())
    if not reading.segments_in(places.log) and not heads.chains(places.heads):
        raise ConfigError(_no_log(places.log))
    public = signing.check_public(public) if public else _public(settings)
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
    public = _public(settings)
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


def _public(settings: "Settings") -> str:
    try:
        return _key(settings).public
    except ConfigError as error:
        path = Path(settings.audit_log.key_file or data_folder() / signing.FILE_NAME)
        if path.exists():
            raise
        raise ConfigError(
            f"the key of the audit log is not in {path}: what it has signed is verified with its "
            "public half, too: divingbell audit verify --key PUBLIC. Take it from where you have "
            "noted it, and not from the log"
        ) from error


def _no_log(folder: Path) -> str:
    return (
        f"there is no audit log in {folder}: run this as the user, and with the settings "
        "(--config), of the server that writes it"
    )


def _tell_nothing(folder: Path, chosen: AuditFilter | None = None) -> None:
    """Say on stderr that there is no such record, and what else may have been meant."""
    if not reading.segments_in(folder):
        words = _no_log(folder)
    else:
        kind, outcome = (chosen.kind, chosen.outcome) if chosen else ("", "")
        unknown = [
            _unknown("kind", kind, reading.KINDS),
            _unknown("outcome", outcome, reading.OUTCOMES),
        ]
        words = "; ".join(filter(None, ["nothing was found", *unknown]))
    print(one_line(words), file=sys.stderr)


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    if not name or name in known:
        return ""
    near = difflib.get_close_matches(name[:40], known, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"{name!r} is no {what}: {meant}"


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


def _print(records: Iterable[Record], as_json: bool) -> int:
    """Print records; return how many there were."""
    count = 0
    for record in records:
        count += 1
        print(_json(record) if as_json else _line(record), flush=True)
    return count


def _json(record: Record) -> str:
    """Return a record as JSON. A terminal may read it: what shows nothing is escaped."""
    text = json.dumps(record, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


def _line(record: Record) -> str:
    """Return a record in one line, for a person."""
    where = [record.get(name) for name in ("session", "cell", "call")]
    told: list[Any] = [record.get(name) for name in _TOLD]
    said = [_text(each) for each in (*told, record.get("arguments"))]
    whose = record.get("user") or "–"
    # What a command has done is of no session: its key is empty, and its cell 0.
    place = " ".join(str(each) for each in where if each is not None and (where[0] or each))
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
    if found.dropped:
        yield f"{amount(found.dropped, 'event')} found no room while the disk was full (log.gap)"
    if found.open_calls:
        calls = deque(map(str, found.open_calls), maxlen=10)
        yield (
            f"{amount(len(found.open_calls), 'call')} may have been made, and no end is recorded: "
            f"call {', '.join(calls)}"
        )
