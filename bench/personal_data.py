"""Texts with values whose places are known, look-alikes, and texts without any personal data.

Half of the sentences, by the number of their template, is for choosing by; figures come from the
other half. It was not unseen: whoever wrote the shapes had read the templates of both halves and
some values, and wrote the generated values and the look-alikes, too. So figures are an upper bound.
DIVINGBELL_TEST_DATA names a folder with `pii/` of presidio-research (MIT); without it, the
sentences of this module have to do.
"""

import functools
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from divingbell.border.privacy import validators

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "DIVINGBELL_TEST_DATA"
NAMES = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "CREDIT_CARD": "CARD",
    "US_SSN": "SSN",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
}
FIELDS = {
    "email": "EMAIL",
    "phone_number": "PHONE",
    "credit_card_number": "CARD",
    "ssn": "SSN",
    "iban": "IBAN",
    "ip_address": "IP",
}
OWN_TEMPLATES = (
    "Please write to {{email}} before Friday.",
    "{{person}} <{{email}}> wrote:",
    "Call me at {{phone_number}} tomorrow.",
    "Mobile: {{phone_number}}\\nFax: {{phone_number}}\\n",
    "My card {{credit_card_number}} is lost.",
    "card number {{credit_card_number}}, please",
    "Her social security number is {{ssn}}",
    "SSN: {{ssn}}",
    "Send it to IBAN {{iban}}",
    "from {{iban}} to another account",
    "address {{ip_address}} was blocked",
    "login from {{ip_address}} failed",
)
LOOK_ALIKES: tuple[str, ...] = (
    "Order 112-{d7}-{d7} has been shipped.",
    "Your tracking number is 1Z{u6}{d10}.",
    "Tracking: 9400 {d4} {d4} {d4} {d4} {d2}",
    "[{ts}] INFO request {d8} took {d3}.{d2} ms",
    "epoch {epoch}{d3} and {epoch}{d6}",
    "upgraded to version {d1}.{d2}.{d1}.{d2}",
    "invoice number {d10}, customer {d6}",
    "id={hex8}-{hex4}-{hex4}-{hex4}-{hex12}",
    "sha256:{hex32}{hex32}",
    "price 1,{d3},{d3}.{d2} USD, ratio 0.{d8}{d8}",
    "ISBN 978-{d1}-{d5}-{d3}-{d1}",
    "{d4}-0{n1}-1{b1}T0{d1}:1{d1}:2{d1}.{d6}Z",
    "part no. {u3}-{d4}-{d4}",
    "at {hex4}{hex4}:{hex4} in module.py:{d3}",
    "flight {u2}{d4} seat {d2}{u1}, gate {d2}",
    "lat 5{d1}.{d6}, lon 1{d1}.{d6}",
)


@dataclass(frozen=True)
class Sample:
    """A text, and the values in it."""

    text: str
    values: tuple[tuple[int, int, str], ...]
    template: int
    has_words: bool = True
    """Whether anything but values stands there."""

    @property
    def is_held_out(self) -> bool:
        return self.template % 2 == 1


def folder() -> Path | None:
    """Where the data of others is, if it is there."""
    found = Path(os.environ.get(VARIABLE, "/nonexistent"), "pii")
    return found if found.is_dir() else None


def research() -> list[Sample]:
    """The synthetic set of presidio-research, or nothing."""
    if (where := folder()) is None:
        return []
    data = json.loads((where / "presidio_research_synth_dataset_v2.json").read_text("utf-8"))
    # Some have another number than their line has: one template must not be in both halves.
    lines = {_without_names(line): number for number, line in numbered()}
    return [
        Sample(
            each["full_text"],
            tuple(
                (span["start_position"], span["end_position"], NAMES[span["entity_type"]])
                for span in each["spans"]
                if span["entity_type"] in NAMES
            ),
            lines.get(_without_names(each["masked"]), each["template_id"]),
        )
        for each in data
    ]


def _without_names(template: str) -> str:
    plain = re.sub(r"\{\{\w+\}\}", "#", template.replace("\\n", " ").replace("\\,", ","))
    return " ".join(plain.split())


def templates() -> list[str]:
    if (where := folder()) is None:
        return list(OWN_TEMPLATES)
    return (where / "presidio_research_templates.txt").read_text("utf-8").splitlines()


def numbered() -> list[tuple[int, str]]:
    """Templates with their numbers; those that differ in the names of values have the same."""
    first: dict[str, int] = {}
    lines = enumerate(templates())
    return [(first.setdefault(_without_names(line), number), line) for number, line in lines]


def filled(times: int) -> Iterator[Sample]:
    """Templates filled with generated values: so many values of each kind."""
    chance = random.Random(20)
    for field in FIELDS:
        fitting = [(number, line) for number, line in numbered() if f"{{{{{field}}}}}" in line]
        for turn in range(times):
            number, line = fitting[turn % len(fitting)]
            yield _filled(line.replace("\\n", "\n").replace("\\,", ","), number, chance)


def look_alikes(times: int) -> Iterator[Sample]:
    chance = random.Random(21)
    for turn in range(times):
        number = turn % len(LOOK_ALIKES)
        text = re.sub(r"\{(\w+?)(\d*)\}", lambda part: _piece(part, chance), LOOK_ALIKES[number])
        yield Sample(text, (), number)


def _filled(line: str, number: int, chance: random.Random) -> Sample:
    text, values = "", []
    for part in re.split(r"(\{\{\w+\}\})", line):
        name = part.strip("{}")
        if part.startswith("{{") and name in FIELDS:
            value = VALUES[FIELDS[name]](chance)
            values.append((len(text), len(text) + len(value), FIELDS[name]))
            text += value
        else:
            text += _word(name, chance) if part.startswith("{{") else part
    return Sample(text, tuple(values), number)


def _word(name: str, chance: random.Random) -> str:
    if name in ("building_number", "age", "year", "zipcode", "postcode"):
        return str(chance.randint(10, 99999))
    if "date" in name:
        return f"{chance.randint(1, 12)}/{chance.randint(1, 28)}/{chance.randint(1990, 2026)}"
    return chance.choice(("Lindqvist", "Okafor", "Marisol", "Hertz", "Ito", "Valparaiso", "Bergen"))


def _piece(part: "re.Match[str]", chance: random.Random) -> str:
    kind, size = part[1], int(part[2] or 1)
    if kind == "ts":
        return _digits(chance, "2026-11-1# 12:3#:4#,###")
    if kind == "epoch":
        return str(chance.randint(1_600_000_000, 1_800_000_000))
    signs = {
        "d": "0123456789",
        "u": "ABCDEFGHJKLM",
        "hex": "0123456789abcdef",
        "n": "123456789",
        "b": "012",
    }
    return "".join(chance.choice(signs[kind]) for _ in range(size))


def _digits(chance: random.Random, form: str) -> str:
    """A form with any digit for each #, and one from 2 on for each %."""
    lowest = {"#": 0, "%": 2}
    return re.sub("[#%]", lambda sign: str(chance.randint(lowest[sign[0]], 9)), form)


def email(chance: random.Random) -> str:
    name = chance.choice(("ann", "bob.lee", "c_ito", "dora+shop", "e.o-neill", "MariaGomez"))
    host = chance.choice(("example.com", "mail.example.org", "firma.de", "uni-bonn.de", "x.co.uk"))
    return f"{name}{chance.randint(1, 999)}@{host}"


def phone(chance: random.Random) -> str:
    forms = (
        "%##-%##-####", "(%##) %##-####", "%##.%##.####", "+1-%##-%##-####", "+1 %## %## ####",
        "%##-%##-####x###", "+49 15# ########", "+44 7700 9#####", "+33 6 ## ## ## ##",
        "07700 9## ###", "020 7946 0###", "06 ## ## ## ##", "030 #######", "0%## ### ## ##",
        "+46 (0)8 %## ### ##", "+91 98### #####", "%#########", "001-%##-%##-####",
    )  # fmt: skip
    return _digits(chance, chance.choice(forms))


def card(chance: random.Random) -> str:
    head, length = chance.choice(
        (("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("36", 14),
         ("6011", 16), ("3530", 16), ("62", 16), ("4", 13), ("5018", 12), ("6304", 13))
    )  # fmt: skip
    body = head + _digits(chance, "#" * (length - len(head) - 1))
    number = next(body + str(last) for last in range(10) if validators.is_luhn(body + str(last)))
    if length == 16 and chance.random() < 0.4:
        return chance.choice(" -").join(number[at : at + 4] for at in range(0, 16, 4))
    return number


def ssn(chance: random.Random) -> str:
    area = chance.choice([each for each in range(1, 900) if each != 666])
    return f"{area:03}-{chance.randint(1, 99):02}-{chance.randint(1, 9999):04}"


def iban(chance: random.Random) -> str:
    country = chance.choice(("DE", "GB", "FR", "ES", "NL", "CH", "IT", "AT", "BE", "PL", "SE"))
    size = validators.IBAN_LENGTHS[country] - 4
    body = _digits(chance, "#" * size)
    if country in ("GB", "NL"):
        body = "".join(chance.choice("ABCDEFGH") for _ in range(4)) + body[4:]
    number = next(
        f"{country}{check:02}{body}"
        for check in range(2, 99)
        if validators.is_iban(f"{country}{check:02}{body}")
    )
    spaced = " ".join(number[at : at + 4] for at in range(0, len(number), 4))
    return spaced if chance.random() < 0.4 else number


def ip(chance: random.Random) -> str:
    while True:
        if chance.random() < 0.15:
            groups = [f"{chance.randint(0x2400, 0x2FFF):x}"]
            address = ":".join(groups + [f"{chance.randint(1, 0xFFFF):x}" for _ in range(7)])
        else:
            address = ".".join(str(chance.randint(1, 254)) for _ in range(4))
        if validators.is_public_ip(address):
            return address


VALUES: dict[str, Callable[[random.Random], str]] = {
    "EMAIL": email,
    "PHONE": phone,
    "CARD": card,
    "SSN": ssn,
    "IBAN": iban,
    "IP": ip,
}


def code() -> str:
    """The source and the docs of this project, without those that speak of personal data."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    return "\n".join(
        path.read_text("utf-8")
        for path in sorted(files)
        if "privacy" not in str(path.relative_to(ROOT))
    )


def logs(lines: int) -> str:
    chance = random.Random(22)
    levels, paths = ("INFO", "DEBUG", "WARNING"), ("/api/v1/items", "/health", "/static/app.js")
    return "".join(
        f"2026-11-17T12:{turn // 60 % 60:02}:{turn % 60:02}.{chance.randint(0, 999):03}Z "
        f"{chance.choice(levels)} worker-{chance.randint(1, 8)} GET {chance.choice(paths)}"
        f"?page={chance.randint(1, 99)} 200 {chance.randint(200, 99999)}B "
        f"{chance.random() * 90:.3f}ms "
        f"request_id={chance.getrandbits(128):032x} trace={chance.getrandbits(64):016x} "
        f"ts={1_700_000_000_000 + turn * 997} from 10.0.0.{chance.randint(1, 9)}\n"
        for turn in range(lines)
    )


def tables(rows: int) -> str:
    chance = random.Random(23)
    head = "order_id,product,amount,weight,created,sku,latitude,longitude,updated_at\n"
    return head + "".join(
        f"{100_000 + turn},{chance.choice(('rope', 'lamp', 'gauge'))},{chance.random() * 999:.2f},"
        f"{chance.random():.12f},2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02},"
        f"SKU-{chance.randint(10**7, 10**8)},{chance.uniform(-90, 90):.6f},"
        f"{chance.uniform(-180, 180):.6f},{1_700_000_000 + turn * 61}\n"
        for turn in range(rows)
    )


def customers(rows: int) -> str:
    """A table with an e-mail address and a telephone number in every line."""
    chance = random.Random(24)
    return "".join(
        f"{turn},customer since 2020,{email(chance)},{_digits(chance, '%##-%##-####')},"
        f"gold,{chance.randint(1, 900)} orders\n"
        for turn in range(rows)
    )


_SYLLABLES = (
    "an",
    "be",
    "ko",
    "ri",
    "ma",
    "to",
    "lu",
    "ves",
    "der",
    "son",
    "mar",
    "ti",
    "sho",
    "bra",
)


def _name(chance: random.Random) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(2, 4))).capitalize()


@functools.cache
def people(count: int) -> list[tuple[str, str]]:
    """Names and addresses of people who are not, each once."""
    chance = random.Random(25)
    found: dict[str, str] = {}
    while len(found) < count:
        name = f"{_name(chance)} {chance.choice(('', 'O’', 'Mac', 'van ', 'É'))}{_name(chance)}"
        found[name] = "NAME"
        place = (
            f"{chance.randint(1, 9999)} {_name(chance)} St{chance.choice(('., ', ', ', chr(10)))}"
        )
        found[f"{place}{_name(chance)}"] = "ADDRESS"
    return list(found.items())[:count]


def answer(values: list[tuple[str, str]]) -> dict[str, object]:
    """The same as a server for customers would list them, with what is nobody's beside it."""
    rows = [
        {
            "id": turn,
            "status": "active",
            "tags": ["gold", "news"],
            **({"fullName": value} if kind == "NAME" else {"address": {"street": value}}),
        }
        for turn, (value, kind) in enumerate(values)
    ]
    return {"total": len(rows), "customers": rows}
