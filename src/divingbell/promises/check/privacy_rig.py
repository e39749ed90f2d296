"""A rig with people: a Divingbell with `privacy = "personal"`, whose servers know some."""

import base64
import html
import json
import re
import secrets
import string
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from divingbell.errors import UnknownToken
from divingbell.promises.check.rig import ALONE, PromiseBroken, expect
from divingbell.promises.check.tool_rig import NAME, SERVER, ToolRig
from divingbell.session.session import Session
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.servers import Server
from divingbell.settings.vault import VaultSettings

SEALED = "sealed"
"""The same server once more, whose results are behind the sandbox's border."""
TOKEN = re.compile(r"\[[A-Z_]+_[1-9][0-9]{5,}\]")
LOOK_ALIKE = "[EMAIL_482715]"
WHO = f"who = servers.{NAME}.people()['people'][0]"
"""Code that asks for the person whom the server knows."""


def word() -> str:
    """A name that nobody has."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(10)).capitalize()


class Person:
    """Somebody whose data stands nowhere else: whatever shows it has it from here."""

    def __init__(self) -> None:
        first, last = word(), word()
        digits = str(secrets.randbelow(900_000) + 100_000)
        self.row = {
            "first_name": first,
            "last_name": last,
            "email": f"{first}.{last}.{word()}@example.com".lower(),
            "phone": f"+49 30 {digits}",
            "street": f"{word()} Street'); print('BRO' + 'KEN') #",
            "address_line_2": f"{word()} Lane; echo BRO''KEN",
            "key": f"sk-proj-{secrets.token_hex(40)}",
            "notes": f"write to {LOOK_ALIKE}",
            "nickname": "owner",
        }

    @property
    def email(self) -> str:
        return self.row["email"]

    @property
    def canaries(self) -> list[str]:
        """The texts that nobody may see: the values, and of the long ones parts too."""
        row = self.row
        mailbox = row["email"].partition("@")[0]
        hidden = [row["first_name"], row["last_name"], mailbox, row["phone"][-6:]]
        hidden += [row[name].partition(" ")[0] for name in ("street", "address_line_2")]
        return [*hidden, row["key"][8:24], row["key"][-16:]]


class PrivacyRig(ToolRig):
    """Sessions that can call servers which know a person. Made with `beside`."""

    PRIVACY: Mapping[str, Any] = {
        "privacy": "personal",
        "privacy_rules": PrivacyRules(
            fields={f"{NAME}.people.nickname": "NAME"},
            border={f"{SEALED}.*": "sandbox"},
            images="checked",
        ),
        "vault": VaultSettings(),
    }

    def _servers(self, trap: int, mirror: int) -> Iterator[Server]:
        self.person = Person()
        people = json.dumps([self.person.row])
        for name in (NAME, SEALED):
            yield Server(name, command=sys.executable, args=("-I", str(SERVER), str(trap), people))

    async def shown(self, session: Session, code: str) -> str:
        """All that a model gets to see of code: events, result and variables, as one text."""
        events = [event async for event in session.stream(code)]
        told = [asdict(event) for event in events]
        last = events[-1].result
        assert last is not None
        variables = [asdict(variable) for variable in await session.variables()]
        return json.dumps([told, last.to_dict(), variables], default=str, ensure_ascii=False)

    def hidden_in(self, text: str) -> None:
        """Raise PromiseBroken if a value, or a part of it, is in a text: as it is, or encoded."""
        for canary in self.person.canaries:
            for form in _forms(canary):
                if form.lower() in text.lower():
                    at = text.lower().index(form.lower())
                    raise PromiseBroken(f"{canary} is shown: …{text[max(0, at - 40) : at + 60]!r}…")

    async def token(self, session: Session, field: str) -> str:
        """The token that a model sees for a field of the person."""
        found = await self.value(session, f"{WHO}\nwho[{field!r}]")
        expect(isinstance(found, str) and bool(TOKEN.fullmatch(found)), f"{field}: {found!r}")
        return str(found)

    async def refused_code(self, session: Session, code: str) -> None:
        """Run code that names what its conversation does not have."""
        try:
            result = await session.run(code)
        except UnknownToken:
            return
        raise PromiseBroken(f"a token that is none was taken: {result.value!r}")


def _forms(value: str) -> Iterator[str]:
    yield from {value, json.dumps(value)[1:-1], quote(value), html.escape(value)}
    yield base64.b64encode(value.encode()).decode().rstrip("=")[:-1]


PrivacyCheck = Callable[[PrivacyRig], Awaitable[str]]
PRIVACY_CHECKS: dict[str, PrivacyCheck] = {}


def privacy_checks(
    *identifiers: str, alone: bool = False
) -> Callable[[PrivacyCheck], PrivacyCheck]:
    """Register a check of these promises that needs a person."""

    def register(function: PrivacyCheck) -> PrivacyCheck:
        for identifier in identifiers:
            PRIVACY_CHECKS[identifier] = function
            if alone:
                ALONE.add(identifier)
        return function

    return register
