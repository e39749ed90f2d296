"""`divingbell vault`: how much is kept of what models do not see; and tokens put back for a person.

Neither forgets anything in the vault, nor keeps a server from using it: the settings at hand may be
others than those of the server that fills it.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.amounts import amount
from divingbell.border.vault import opening, tokens
from divingbell.border.vault.base import Counts, StoreFailed
from divingbell.border.vault.seal import NotOpened
from divingbell.border.vault.vault import OTHER_KEY, Entry
from divingbell.errors import ConfigError, InvalidInput
from divingbell.escapes import clean
from divingbell.host.places import data_folder
from divingbell.journal import log_lines
from divingbell.journal.events import Revealed
from divingbell.principal import Principal
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.recording import record
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from divingbell.settings.config import Settings
    from divingbell.settings.vault import VaultSettings

MOST_TEXT = 64 << 20
"""Bytes of a text in which tokens are put back."""
MOST_TOLD = 20
"""Tokens that are told of one by one."""
SHORT = 8
"""Characters that tell one conversation from another in messages, and on the command line."""
_TOKEN = re.compile(tokens.TOKEN.pattern.encode())
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))

Known = Mapping[str, Mapping[str, Entry]]
"""For each token, what it stands for in each conversation that has it."""


# How much there is


async def show(settings: "Settings", *, as_json: bool = False) -> int:
    """Print how much the vault holds; the key is not needed.

    Raises:
        ConfigError: it can't be read.
    """
    home = data_folder()
    counts = await _counts(settings.vault, home)
    place = str(opening.file_of(settings.vault, home) or settings.vault.address)
    if as_json:
        print(json.dumps(_as_json(settings.vault, place, counts), indent=2))
    else:
        _print(settings, place, counts)
    return exit_status.OK


async def _counts(chosen: "VaultSettings", home: Path) -> Counts:
    if _is_missing(chosen, home):
        return Counts(0, {})
    store = opening.make_store(chosen, home)
    try:
        return await store.counts()
    except StoreFailed as error:
        raise _unreadable(error) from error
    finally:
        await store.close()


def _unreadable(error: StoreFailed) -> ConfigError:
    return ConfigError(f"the vault can't be read: {error}")


def _is_missing(chosen: "VaultSettings", home: Path) -> bool:
    """Whether nothing was ever kept: to look must not make a vault."""
    path = opening.file_of(chosen, home)
    return path is not None and not os.path.lexists(path)


def _as_json(chosen: "VaultSettings", place: str, counts: Counts) -> dict[str, object]:
    return {
        "store": place,
        "keep": chosen.keep,
        "conversations": counts.conversations,
        "values": dict(sorted(counts.values.items())),
    }


def _print(settings: "Settings", place: str, counts: Counts) -> None:
    total = sum(counts.values.values())
    print(
        f"{amount(total, 'value')} of {amount(counts.conversations, 'conversation')}, "
        f"sealed, in {clean(place)}"
    )
    for kind, count in sorted(counts.values.items(), key=lambda row: (-row[1], row[0])):
        print(f"{count:>8}  {clean(kind)}")
    print(f"A conversation is forgotten {_time(settings.vault.keep)} after its last use.")
    if not total:
        print(
            "Values come here when they are kept from a model: `divingbell serve` does that with\n"
            'secrets, and with `--private` (privacy = "personal") with personal data, too.'
        )


def _time(seconds: float) -> str:
    size, name = next(unit for unit in _UNITS if seconds % unit[0] == 0 or unit[0] == 1)
    return amount(round(seconds / size), name)


# Putting back


@dataclass(frozen=True, slots=True)
class Text:
    """A text with tokens in it."""

    data: bytes

    @property
    def tokens(self) -> list[str]:
        """The tokens, and what looks like one, in their order."""
        found = (match[0].decode() for match in _TOKEN.finditer(self.data))
        return list(dict.fromkeys(found))

    def with_values(self, values: Mapping[str, str]) -> bytes:
        """Return the text with values in place of those tokens that have one."""

        def value(found: "re.Match[bytes]") -> bytes:
            restored = values.get(found[0].decode())
            return found[0] if restored is None else restored.encode("utf-8", "surrogatepass")

        return _TOKEN.sub(value, self.data)


def read_text(file: str) -> Text:
    """Read a file, or stdin for `-`.

    Raises:
        InvalidInput: it can't be read, or is too large.
    """
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MOST_TEXT + 1)
        else:
            with open(file, "rb") as opened:
                data = opened.read(MOST_TEXT + 1)
    except OSError as error:
        raise InvalidInput(f"{file} can't be read: {error.strerror}") from None
    if len(data) > MOST_TEXT:
        raise InvalidInput(f"{file} has more than {MOST_TEXT >> 20} MB: cut it into parts")
    return Text(data)


def check_reader(*, to_program: bool) -> None:
    """Raise ConfigError if nobody is at a terminal, and nobody has said that this is meant.

    An agent that runs commands on this machine reads what they print, and so does its model. This
    keeps it from happening by accident; whoever can read the key can read the vault.
    """
    if not to_program and not (sys.stdout.isatty() or sys.stderr.isatty()):
        raise ConfigError(
            "there is no terminal here, so that a program reads what this prints; if it hands that "
            "to a model, the model sees the values: add --to-program if this is meant"
        )


async def reveal(text: Text, settings: "Settings", *, conversation: str = "") -> int:
    """Print the text with values in place of tokens; return the exit status.

    Tokens that nobody knows stay as they are, are told on stderr, and make it fail.

    Raises:
        ConfigError: the vault can't be opened, or it is not clear which values are meant.
        NotRecorded: there is an audit log, and it can't be written.
    """
    found = text.tokens
    known = await _known(settings.vault, found) if found else {}
    values = _chosen(known, conversation)
    revealed = Revealed(Principal(client="command"), len(values), "command")
    await record(revealed, settings)
    _write(text.with_values(values))
    log_lines.write(revealed)
    return _told(found, values)


async def _known(chosen: "VaultSettings", wanted: list[str]) -> Known:
    home = data_folder()
    if _is_missing(chosen, home):
        raise ConfigError(
            f"there is no vault {opening.file_of(chosen, home)}: run this as the user and with the "
            "settings (--config) of the server that has given the tokens out"
        )
    vaults = opening.open_vaults(chosen, home, tell=None)
    try:
        return await vaults.anywhere(wanted)
    except StoreFailed as error:
        raise _unreadable(error) from error
    except NotOpened:
        raise ConfigError(OTHER_KEY) from None
    finally:
        await vaults.close()


def _chosen(known: Known, conversation: str) -> dict[str, str]:
    """The value of each token. Numbers are random, so that two conversations can have the same.

    Where they have, the text is one of the conversation that knows all of its tokens.
    """
    names = {name for entries in known.values() for name in entries}
    meant = {name for name in names if name.startswith(conversation)} if conversation else names
    if conversation and len(meant) != 1:
        raise ConfigError(
            f"no conversation that knows one of these tokens is {conversation!r} alone: "
            f"there are {_listed(names) or 'none'}"
        )
    if not conversation:
        complete = {name for name in names if all(name in entries for entries in known.values())}
        meant = complete if len(complete) == 1 else names
    values = {}
    for token, entries in known.items():
        fitting = {name: entry.value for name, entry in entries.items() if name in meant}
        if len(set(fitting.values())) > 1:
            raise ConfigError(
                f"{token} stands for one value in one conversation and for another in another: "
                f"say which is meant with --conversation, one of {_listed(fitting)}"
            )
        if fitting:
            values[token] = next(iter(fitting.values()))
    return values


def _listed(names: "set[str] | Mapping[str, str]") -> str:
    return ", ".join(sorted(name[:SHORT] for name in names))


def _write(data: bytes) -> None:
    if sys.stdout.isatty():
        # Values are text of others: a terminal would obey what they say.
        sys.stdout.write(clean(data.decode("utf-8", "backslashreplace")))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _told(found: list[str], values: Mapping[str, str]) -> int:
    unknown = [token for token in found if token not in values]
    tell(f"{amount(len(values), 'token')} replaced, {len(unknown)} not known")
    for token in unknown[:MOST_TOLD]:
        tell(f"{token} is not known: forgotten, never given out, or of another vault")
    if len(unknown) > MOST_TOLD:
        tell(f"and {len(unknown) - MOST_TOLD} more")
    return exit_status.FAILED if unknown else exit_status.OK
