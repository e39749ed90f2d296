"""Sentences and values that no shape was written by: other templates, values by Faker.

    echo '[500, "usual"]' | python held_out.py

Runs in the environment of the peers, which has Faker. Each line asks for so many of a set (usual,
more, other, numbers, later, newest, apart); the answer is a line with samples as JSON: the text,
the places and kinds of its values, the number of its template, and whether this has any words. One
seed, so that they are the same in each run. Templates with even numbers are for choosing by,
figures come from the odd ones, as in personal_data.py. The rules by which they stay worth
something: what loses in the odd half is not looked at and not mended; who looks writes new ones,
and turns those that were seen into even ones; none is changed to be found. `other` fills them with
values of countries of which none was there for choosing by. `numbers` is a set of telephone numbers
alone, whose halves differ in their templates and in their countries: half of its values are by
Faker, and half are numbers that libphonenumber holds for valid, in seven ways to write them.
`later` is the same with templates of which all have been looked at since, so that all are for
choosing by. `newest` has templates that were written after those, and values of a seed of its own.
`apart` is the same with templates of somebody who had not seen what finds them.
"""

import datetime
import hashlib
import ipaddress
import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import held_out_texts
import later_number_texts
import newest_number_texts
import number_texts
import phonenumbers
import written_apart_texts
from faker import Faker

SEED = 4711
NEWEST_SEED = 90_210
APART_SEED = 8_128
COUNTRIES = (
    "en_US", "en_GB", "en_CA", "en_AU", "en_IN", "en_NZ", "en_IE", "de_DE", "de_AT", "de_CH",
    "fr_FR", "fr_CA", "es_ES", "es_MX", "it_IT", "nl_NL", "sv_SE", "pl_PL", "pt_BR", "pt_PT",
    "da_DK", "fi_FI", "no_NO", "cs_CZ", "ro_RO", "hu_HU", "tr_TR", "ja_JP",
)  # fmt: skip
MORE_COUNTRIES = (
    "bg_BG", "el_GR", "es_AR", "es_CO", "et_EE", "fr_BE", "he_IL", "hr_HR", "id_ID", "lt_LT",
    "lv_LV", "nl_BE", "ru_RU", "sk_SK", "sl_SI", "th_TH", "uk_UA", "zh_CN",
)  # fmt: skip
"""For choosing by: what they lose has been seen."""
OTHER_COUNTRIES = (
    "az_AZ", "bn_BD", "es_CL", "fa_IR", "hi_IN", "hy_AM", "ka_GE", "ko_KR", "ne_NP",
    "vi_VN", "zh_TW", "sq_AL", "mt_MT", "ar_AE", "ga_IE", "en_BD",
)  # fmt: skip
UNSEEN_COUNTRIES = (
    *OTHER_COUNTRIES, "am_ET", "ar_DZ", "ar_JO", "ar_PS", "bs_BA", "de_LI", "de_LU",
    "mk_MK", "ta_IN", "tw_GH", "uz_UZ",
)  # fmt: skip
"""Nobody has looked at what these lose."""
KINDS = ("EMAIL", "PHONE", "CARD", "SSN", "IBAN", "IP")
Place = tuple[int, int, str]


class Filler:
    """Fills templates with values of one country after another."""

    def __init__(self, countries: Sequence[str], seed: int = SEED) -> None:
        self._chance = random.Random(seed)
        self._countries = countries
        self._makers = {name: Faker(name) for name in {*COUNTRIES, *countries}}
        for maker in self._makers.values():
            maker.seed_instance(seed)

    def filled(self, template: str) -> tuple[str, list[Place]]:
        maker = self._makers[self._chance.choice(self._countries)]
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
            number = str(self._makers[self._chance.choice(self._countries)].iban())
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


class NumberFiller(Filler):
    """Fills templates with telephone numbers of one half of the world."""

    WAYS: tuple[tuple[int, Callable[[phonenumbers.PhoneNumber], str]], ...] = (
        (40, lambda number: _formatted(number, "NATIONAL")),
        (25, lambda number: _formatted(number, "INTERNATIONAL")),
        (10, lambda number: _formatted(number, "E164")),
        (10, lambda number: re.sub(r"\D", "", _formatted(number, "NATIONAL"))),
        (5, lambda number: _formatted(number, "INTERNATIONAL").replace("+", "00", 1)),
        (5, lambda number: _formatted(number, "NATIONAL").replace(" ", "-")),
        (5, lambda number: _formatted(number, "NATIONAL").replace(" ", ".").replace("-", ".")),
    )
    """How often a number is written in which way."""

    def __init__(self, half: int, seed: int = SEED) -> None:
        super().__init__(UNSEEN_COUNTRIES if half else (*COUNTRIES, *MORE_COUNTRIES), seed)
        # One country for each code that is dialled: there are 25 with +1.
        regions = (each[0] for each in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.values())
        self._regions = sorted(each for each in regions if each != "001" and _half(each) == half)

    def _value(self, name: str, maker: Any) -> str:
        if name != "phone" or self._chance.random() < 0.5:
            return super()._value(name, maker)
        ways = self._chance.choices(self.WAYS, [weight for weight, _ in self.WAYS])
        return ways[0][1](self._number())

    def _number(self) -> phonenumbers.PhoneNumber:
        """A number that may have been given out: an example with other digits at its end."""
        kinds = phonenumbers.PhoneNumberType
        while True:
            region = self._chance.choice(self._regions)
            kind = self._chance.choice((kinds.FIXED_LINE, kinds.MOBILE))
            example = phonenumbers.example_number_for_type(region, kind)
            if example is None:
                continue
            digits = phonenumbers.national_significant_number(example)
            changed = digits[:-4] + f"{self._chance.randint(0, 9999):04}"
            number = phonenumbers.parse(f"+{example.country_code}{changed}")
            if phonenumbers.is_valid_number(number):
                return number


def _formatted(number: phonenumbers.PhoneNumber, form: str) -> str:
    return str(phonenumbers.format_number(number, getattr(phonenumbers.PhoneNumberFormat, form)))


def numbers(times: int) -> list[dict[str, Any]]:
    """In each half so many telephone numbers at least, and as many sentences without any."""
    return _of_numbers(times, number_texts.TEXTS, number_texts.LOOK_ALIKES, SEED)


def newest_numbers(times: int) -> list[dict[str, Any]]:
    """The same of the newest templates."""
    lines = newest_number_texts.TEXTS, newest_number_texts.LOOK_ALIKES
    return _of_numbers(times, *lines, NEWEST_SEED)


def numbers_apart(times: int) -> list[dict[str, Any]]:
    """The same of templates by somebody who had not seen what finds them."""
    lines = written_apart_texts.WITH_NUMBERS, written_apart_texts.LOOK_ALIKES
    return _of_numbers(times, *lines, APART_SEED)


def _of_numbers(
    times: int, texts: Sequence[str], look_alikes: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    made = []
    for half in (0, 1):
        filler = NumberFiller(half, seed)
        for lines in (texts, look_alikes):
            of_half = [each for each in numbered((), lines) if each[0] % 2 == half]
            made += [_sample(filler, *of_half[turn % len(of_half)]) for turn in range(times)]
    return made


def later_numbers(times: int) -> list[dict[str, Any]]:
    """The same of templates that all have been seen, with values for choosing by."""
    filler, made = NumberFiller(0), []
    for lines in (later_number_texts.TEXTS, later_number_texts.LOOK_ALIKES):
        places = (turn % len(lines) for turn in range(times))
        made += [_sample(filler, 2 * place, lines[place]) for place in places]
    return made


def numbered(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, str]]:
    """Templates with their numbers: even ones for all that were seen."""
    lines = [*((line, 0) for line in first), *((line, _half(line)) for line in second)]
    return [(2 * place + half, line) for place, (line, half) in enumerate(lines)]


def _half(line: str) -> int:
    return hashlib.sha256(line.encode()).digest()[0] % 2


def has_words(template: str) -> bool:
    """Whether a template says anything itself, besides values, tags and the numbers of rows."""
    return bool(re.search(r"[^\W\d_]", re.sub(r"\{\w+\}|</?\w+>", "", template)))


def samples(times: int, countries: Sequence[str]) -> list[dict[str, Any]]:
    """In each half so many values of each kind at least, and so many sentences without any."""
    filler, made = Filler(countries), []
    templates = numbered(held_out_texts.FIRST, held_out_texts.SECOND)
    look_alikes = numbered(held_out_texts.FIRST_LOOK_ALIKES, held_out_texts.SECOND_LOOK_ALIKES)
    of_kind = [[each for each in templates if f"{{{kind.lower()}}}" in each[1]] for kind in KINDS]
    for fitting in (*of_kind, look_alikes):
        for half in (0, 1):
            of_half = [each for each in fitting if each[0] % 2 == half]
            for turn in range(times):
                made.append(_sample(filler, *of_half[turn % len(of_half)]))
    return made


def _sample(filler: Filler, number: int, line: str) -> dict[str, Any]:
    text, values = filler.filled(line)
    return {"text": text, "values": values, "template": number, "has_words": has_words(line)}


def main() -> None:
    sets = {"usual": COUNTRIES, "more": MORE_COUNTRIES, "other": OTHER_COUNTRIES}
    alone = {
        "numbers": numbers,
        "later": later_numbers,
        "newest": newest_numbers,
        "apart": numbers_apart,
    }
    for line in sys.stdin:
        wanted, name = json.loads(line)
        made = alone[name](wanted) if name in alone else samples(wanted, sets[name])
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
