"""Sentences and values that no shape was written by: other templates, values by Faker.

    python held_out.py [TIMES]

Runs in the environment of the peers, which has Faker, and prints samples as JSON: the text, the
places and kinds of its values, and the number of its template. One seed, so that they are the same
in each run. Templates with even numbers are for choosing by, figures come from the odd ones, as in
personal_data.py. The rules by which they stay worth something: what loses in the odd half may be
told and not mended; a template that is added goes to the end; none is changed to be found.
"""

import datetime
import ipaddress
import json
import random
import re
import sys
from collections.abc import Callable
from typing import Any

from faker import Faker

SEED = 4711
COUNTRIES = (
    "en_US", "en_GB", "en_CA", "en_AU", "en_IN", "en_NZ", "en_IE", "de_DE", "de_AT", "de_CH",
    "fr_FR", "fr_CA", "es_ES", "es_MX", "it_IT", "nl_NL", "sv_SE", "pl_PL", "pt_BR", "pt_PT",
    "da_DK", "fi_FI", "no_NO", "cs_CZ", "ro_RO", "hu_HU", "tr_TR", "ja_JP",
)  # fmt: skip
KINDS = ("EMAIL", "PHONE", "CARD", "SSN", "IBAN", "IP")
TEMPLATES = (
    "From: {name} <{email}>\nTo: support\nSubject: Re: {words}\n\nHi, any news about this?",
    "hey, can u send the deck to {email} and cc {email}? thx",
    '{{"id": {int6}, "customer": {{"name": "{name}", "mail": "{email}", "active": true}}}}',
    "{int6},{name},{email},{date},{amount}",
    "INSERT INTO users (id, login, created) VALUES ({int6}, '{email}', '{date}');",
    "{time} ERROR smtp: 550 5.1.1 <{email}>: Recipient address rejected: User unknown",
    "https://app.invalid/unsubscribe?u={email}&list={int6}",
    '<a href="mailto:{email}">{name}</a>',
    "Bitte schicken Sie die Unterlagen an {email} oder rufen Sie {name} an.",
    "0  {name}  {email}  {int6}\n1  {name}  {email}  {int6}",
    "Merci d'écrire à {email} avant le {date}.",
    "user={email} action=login ok=1",
    "KeyError: '{email}'",
    "- owner: {email}\n  since: {date}\n",
    "Contacto: {name}, {company}, {email}",
    "{name} ({email}) left a comment: {words}",
    "You can get me on {phone} after lunch, otherwise drop me a line.",
    "{name}\n{company}\n{street}\n{city}\nT {phone}\nF {phone}\n{email}",
    '{{"name": "{name}", "phoneNumber": "{phone}", "vip": false}}',
    "{int6};{name};{phone};{city};{date}",
    "If nobody opens please ring {phone}. The parcel is {uuid}.",
    "my number changed, it's {phone} now",
    "customer {name} wants a call back on {phone} about order {int6}",
    "Tel.: {phone}, Mobil: {phone}",
    "Telefoon {phone} (alleen kantooruren)",
    "Appelez-nous au {phone} du lundi au vendredi.",
    "Llámame al {phone}, por favor.",
    "emergency_contact_phone: {phone}",
    "SMS sent to {phone} (delivered {time})",
    "{phone} is the best way to reach {name} in {city}.",
    "UPDATE contacts SET mobile='{phone}' WHERE id={int6};",
    "<td>{name}</td><td>{phone}</td><td>{city}</td>",
    "0  {name}  {phone}  {amount}\n1  {name}  {phone}  {amount}",
    "WhatsApp me: {phone}",
    "Puoi chiamarmi allo {phone}?",
    "Ring mig på {phone} i kväll.",
    "Her landline at {company} is {phone}.",
    "contact_no={phone}&city={city}",
    "please charge {card}, exp {expiry}, cvc {int3}",
    "Paid with {card} on {date}.",
    '{{"type": "payment", "pan": "{card}", "expiry": "{expiry}", "amount": {amount}}}',
    "{int6},{name},{card},{expiry},{amount}",
    "The customer read {card} over the phone and it was declined.",
    "billing: number={card} name='{name}'",
    "Kreditkarte {card}, gültig bis {expiry}",
    "INSERT INTO payments VALUES ({int6}, '{card}', {amount}, '{date}');",
    "{time} DEBUG gateway request body card_number={card}&amount={amount}",
    "Ma carte bancaire: {card} ({expiry})",
    "refund {amount} to {card}",
    "0  {name}  {card}  {amount}\n1  {name}  {card}  {amount}",
    "Applicant {name}, {ssn}, born in {city}",
    "What is your social? It's {ssn}.",
    '{{"employee": "{name}", "ssn": "{ssn}", "start": "{date}"}}',
    "{int6},{name},{ssn},{date},{amount}",
    "W-2 for {name} ({ssn}), wages {amount}",
    "SSN {ssn} matches more than one record",
    "UPDATE staff SET social_security='{ssn}' WHERE id={int6};",
    "taxpayer id {ssn}, filed {date}",
    "0  {name}  {ssn}  {amount}\n1  {name}  {ssn}  {amount}",
    "Please verify the last four of {ssn} for {name}.",
    "Wire {amount} to {iban} today, reference {int6}.",
    "IBAN: {iban}\nBIC: {swift}\n{name}",
    '{{"payee": "{name}", "iban": "{iban}", "currency": "EUR"}}',
    "{int6};{name};{iban};{amount}",
    "Bitte überweisen Sie den Betrag auf das Konto {iban}.",
    "Veuillez virer {amount} € sur le compte {iban}.",
    "SEPA direct debit mandate {int6} for account {iban} ({name})",
    "INSERT INTO accounts VALUES ({int6}, '{iban}', '{swift}');",
    "payout failed for {iban}: account closed",
    "0  {name}  {iban}  {amount}\n1  {name}  {iban}  {amount}",
    '{ip} - - [{date}:{time} +0000] "GET /index.html HTTP/1.1" 200 {int6} "-" "{agent}"',
    "{time} sshd[{int6}]: Failed password for root from {ip} port {int5} ssh2",
    '{{"event": "login", "remote_addr": "{ip}", "user_id": {int6}}}',
    "X-Forwarded-For: {ip}, {private}",
    "banned {ip} for 10 min after {int3} tries",
    "{int6},{name},{ip},{date}",
    "My address at home is {ip}, can you open the port?",
    "connect to {ip}:{int5} timed out",
    "ufw deny from {ip} to any",
    "INSERT INTO visits VALUES ('{ip}', '{date}', '{agent}');",
    "traceroute: 7  {ip}  {int3}.123 ms",
    "client_ip={ip} status=200",
    "Logged in from {ip} ({city}) with {agent}",
)
"""Numbered by their places; those of one kind stand together, so that both halves have them all."""
LOOK_ALIKES = (
    "User-Agent: {agent}",
    "EAN {ean}, ISBN {isbn}, {amount} each",
    "commit {sha}\nDate: {date} {time}",
    "uuid {uuid} moved to {uuid}",
    "epoch={epoch} epoch_ms={epoch}{int3} mac={mac}",
    "VIN {vin}, plate {plate}, {int6} km",
    "order {order}, invoice INV-{int5}-{int3}, {amount}",
    "ping {private} from 10.0.{small}.{small}: icmp_seq={small} ttl=64",
    "position {coordinate}, {coordinate} at {time}",
    "{company} sold {int6} units in 20{two}; growth {two}.{int3} %",
    "numpy=={small}.{two}.{small} torch=={small}.{two}.{small}.{two}",
    "{date} to {date}, room {int3}, seat {small}{letter}",
    "SELECT id, sum(x) FROM t WHERE k IN ({int6}, {int6}, {int5}) LIMIT {int3};",
    "[{int3}, {int5}, {int6}, {int3}, {int5}]",
    "{int6} {int5} {int3}.{int6} {epoch} {int5}",
    "array([[0.{int6}, -{small}.{int5}], [{small}.{int6}e-0{small}, 0.{int3}]])",
    "@app.route('/v{small}/items') def items(page={two}): ...",
    "npm install @babel/core@7.{two}.{small} react@18.{small}.{small}",
    "swift {swift}, bank code {int5}{int3}, reference {ean}",
    "{time} pid={int5} rss={int6} kB faults={int6} {sha}",
    "ticket #{int6} closed {date}, took {int3} minutes, score {small}.{small}",
    "tracking {letter}{letter}{ean}{letter}{letter}, weight {small}.{int3} kg",
    "0x{hex} <main+{int3}>: mov rax, 0x{hex}",
    "Figure {small}.{small}.{small}: {int3} of {int5} samples (p = 0.{int3})",
)

Place = tuple[int, int, str]


class Filler:
    """Fills templates with values of one country after another."""

    def __init__(self) -> None:
        self._chance = random.Random(SEED)
        self._makers = {name: Faker(name) for name in COUNTRIES}
        for maker in self._makers.values():
            maker.seed_instance(SEED)

    def filled(self, template: str) -> tuple[str, list[Place]]:
        maker = self._makers[self._chance.choice(COUNTRIES)]
        text, places = "", []
        for part in re.split(r"(\{\w+\})", template.replace("{{", "\0").replace("}}", "\1")):
            name = part.strip("{}")
            if part.startswith("{"):
                part = self._value(name, maker)
                if name.upper() in KINDS:
                    places.append((len(text), len(text) + len(part), name.upper()))
            text += part.replace("\0", "{").replace("\1", "}")
        return text, places

    def _value(self, name: str, maker: Any) -> str:
        if digits := re.fullmatch(r"int(\d)", name):
            return str(self._chance.randint(10 ** (int(digits[1]) - 1), 10 ** int(digits[1]) - 1))
        ways: dict[str, Callable[[], str]] = {
            "email": lambda: self._chance.choice(
                (maker.email, maker.company_email, maker.free_email, maker.ascii_safe_email)
            )(),
            "phone": maker.phone_number,
            "card": lambda: self._grouped_card(self._american.credit_card_number()),
            "ssn": self._american.ssn,
            "iban": lambda: self._grouped(self._account()),
            "ip": self._address,
            "name": maker.name,
            "company": maker.company,
            "street": maker.street_address,
            "city": self._makers["de_DE"].city,  # those of Italy come in another order each time
            "words": lambda: self._american.sentence(4),
            "date": self._date,
            "time": lambda: f"{self._moment():%H:%M:%S}",
            "amount": lambda: f"{self._chance.uniform(1, 9999):.2f}",
            "expiry": lambda: f"{self._moment():%m/%y}",
            "uuid": self._american.uuid4,
            "agent": lambda: self._chance.choice(
                (self._american.chrome, self._american.safari, self._american.internet_explorer)
            )(),
            "private": self._american.ipv4_private,
            "swift": lambda: self._american.swift(length=11),
            "ean": self._american.ean13,
            "isbn": self._american.isbn13,
            "sha": self._american.sha1,
            "mac": self._american.mac_address,
            "vin": self._american.vin,
            "plate": self._american.license_plate,
            "coordinate": lambda: str(self._american.coordinate()),
            "epoch": lambda: str(self._chance.randint(1_500_000_000, 1_800_000_000)),
            "order": lambda: self._american.bothify("##?-#######-####"),
            "small": lambda: str(self._chance.randint(1, 9)),
            "two": lambda: str(self._chance.randint(10, 99)),
            "letter": lambda: self._chance.choice("ABCDEFGHJK"),
            "hex": lambda: f"{self._chance.getrandbits(40):010x}",
        }
        return ways[name]()

    def _moment(self) -> datetime.datetime:
        # Not by Faker, whose times depend on the day of the run.
        return datetime.datetime.fromtimestamp(self._chance.randint(0, 2**31), datetime.UTC)

    def _date(self) -> str:
        form = self._chance.choice(("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y"))
        return self._moment().strftime(form)

    @property
    def _american(self) -> Any:
        return self._makers["en_US"]

    def _account(self) -> str:
        while True:
            number = str(self._makers[self._chance.choice(COUNTRIES)].iban())
            if not number.startswith("GB"):  # Faker makes these one digit too short
                return number

    def _grouped(self, number: str) -> str:
        is_spaced = self._chance.random() < 0.5
        return " ".join(re.findall(".{1,4}", number)) if is_spaced else number

    def _grouped_card(self, number: str) -> str:
        sign = self._chance.choice(("", "", " ", "-"))
        form = r"(.{4})(.{6})(.+)" if len(number) in (14, 15) else r"(.{4})(.{4})(.{4})(.+)"
        return re.sub(f"^{form}$", lambda found: sign.join(found.groups()), number)

    def _address(self) -> str:
        while True:
            maker = self._american
            address = str(maker.ipv6() if self._chance.random() < 0.2 else maker.ipv4_public())
            parsed = ipaddress.ip_address(address)
            if parsed.is_global and not parsed.is_multicast:
                return address


def samples(times: int) -> list[dict[str, Any]]:
    """So many values of each kind at least, and so many sentences without any."""
    filler, made = Filler(), []
    for kind in KINDS:
        field = f"{{{kind.lower()}}}"
        fitting = [number for number, line in enumerate(TEMPLATES) if field in line]
        for turn in range(times):
            number = fitting[turn % len(fitting)]
            text, values = filler.filled(TEMPLATES[number])
            made.append({"text": text, "values": values, "template": number})
    for turn in range(times):
        number = turn % len(LOOK_ALIKES)
        text, _ = filler.filled(LOOK_ALIKES[number])
        made.append({"text": text, "values": [], "template": number})
    return made


if __name__ == "__main__":
    json.dump(samples(int(sys.argv[1]) if len(sys.argv) > 1 else 500), sys.stdout)
