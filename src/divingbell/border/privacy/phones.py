"""Shapes of telephone numbers: as countries write them, and beside words that speak of them."""

import dataclasses
import re
from collections.abc import Callable

from divingbell.border.privacy import phone_words, validators
from divingbell.border.privacy.numerals import JOINED, TO, gate
from divingbell.border.privacy.shape import Shape

_EXTENSION = r"(?: ?(?:x|ext\.?|#) ?\d{1,6})?"
_NORTH_AMERICAN = (
    rf"(?:\+?1[-. ]|8 )?(?:\(\d{{3}}\) ?-?|\d{{3}}[-. ])\d{{3}}[-.]\d{{4}}{_EXTENSION}"
)
_NORTH_AMERICAN_SPACED = rf"(?:\(\d{{3}}\) ?|[2-9]\d{{2}} )[2-9]\d{{2}} \d{{4}}{_EXTENSION}"
_PART = r"(?:[ .\-/]|[ .\-/]?\([0-9]{1,4}\)[ .\-/]?)?\d{1,8}"
_PLUS = r"(?:\+[1-9]|(?:\(\+|\+\()[1-9]\d{0,2}\) ?\d)"
_INTERNATIONAL = rf"{_PLUS}(?:{_PART}){{2,8}}{_EXTENSION}"
_WITH_ZEROS = rf"00[1-9]\d{{0,2}}(?:[ .\-/]\d{{1,8}}){{2,6}}{_EXTENSION}"
_AREA = r"\(0[1-9]\d{0,4}\)[ .\-/]?"
_EASTERN = (
    r"(?:[1-9]\d{1,4}|(?:8[ -])?\([1-9]\d{2,4}\)|8 0?\d{2,4})[ -]\d{3}-\d{2}-\d{2}"
    r"|8[ -]0\d{3}[ -]\d{2}-\d{2}-\d{2}|[1-9]\d/\d{3}-\d{3,4}"
)
_NATIONAL = (
    rf"(?:{_AREA}\d{{2,8}}|0[1-9]\d{{0,4}}[ .\-/]\d{{2,8}})(?:[ .\-/]\d{{2,8}}){{0,4}}"
    # As in Brazil and Mexico.
    r"|(?:\(\d{2}\) ?|\d{2}[ -])9?[1-9]\d{3}-\d{4}"
    # The code of a country or a region, and nine digits; that of an area, and seven.
    r"|\([1-9]\d{1,3}\) ?[2-9]\d{2} ?\d{3} ?\d{3}"
    r"|\([2-9]\d{2}\) ?\d{7}"
    # As in the east of Europe.
    rf"|{_EASTERN}"
)
# Begins with a set of characters and looks behind it: `re` skips what is not in the set.
# No later part of a card's number.
# Nor of any other with letters, 12X-9055409-0367, unless it begins with a bracket or a plus.
# A bracket belongs to it if an area stands in it.
_PHONE_DIGIT = (
    r"[(+\d](?:(?<!\()|(?=\+?\d{1,5}\)))"
    rf"(?:(?<!{JOINED}.)(?<![.+].)(?<!\d{{4}}[ -].)(?<!\w-\d)|(?<=\\[nrt].))"
)
_AREA_WITHIN = r" ?\(\d{1,5}\)[ .\-/]{0,2}\d"
# One blank at most: with two, the next column of a table begins.
_STEP = rf"(?:{_AREA_WITHIN}|(?: |[.\-/]{{1,2}} ?)?\d)"
# Behind so many digits a slash parts two numbers, unless little follows it: 030 1234567/68.
_LAST = r"(?=\d{1,4}+(?![ .\-]?\d|/\d{5}))"
_LATER_STEP = rf"(?:{_AREA_WITHIN}|(?: |[.\-]{{1,2}} ?|/{_LAST})?\d)"
_CODE = r"(?:(?<=\()\+?\d{1,5}\)|(?<=\+)\(\d{1,5}\))[ .\-/]{0,2}"
_ANY = rf"(?:{_CODE}{_STEP}{{4,6}}|{_STEP}{{6}}){_LATER_STEP}{{0,8}}{_EXTENSION}"
_ANY_LABELLED = rf"(?:{_CODE})?{_STEP}{{4,6}}{_LATER_STEP}{{0,8}}{_EXTENSION}"
# What a number begins with is asked first: it is the quickest to be answered with no.
_FIRST = r"(?=[(+\d])"
_PHONE_AT = rf"{_FIRST}(?:(?<!{JOINED})(?<![.+])(?<![0-9a-fA-F]-)(?<!\d[ /,])|(?<=\\[nrt]))"
# After a comma it is the next cell of a row: no group of a large number begins with a zero.
_PHONE_AT_ZERO = (
    rf"{_FIRST}(?:(?<!{JOINED})(?<![.+])(?<![0-9a-fA-F]-)(?<!\d[ /])(?<!\d,(?![0(]))|(?<=\\[nrt]))"
)
_PHONE_WORDS = (
    rf"{phone_words.LATIN}|\bt(?:é|e)l\b|whatsapp|(?:\b|_)sms(?:\b|_)"
    r"|hotline|handy|voicemail|landline|rufnummer|\bcall me"
    r"|\b(?:get|reach|catch) (?:me|us)|\bll(?:á|a)m(?:ame|enos|eme|ar)|\bchiama(?:mi|ci|r)|\banruf"
    r"|\berreich|\bligue|\bzadzwo"
    # To call, mobile and telephone in the languages of Europe and of those who write to it.
    r"|contact[_ ](?:no|nr|num)|\bmsisdn|\bgsm\b|\btlf\b|\bph[.:]"
    r"|\b(?:my|your|ur|his|her|their|our|new) (?:new )?number|number to (?:reach|call)"
    r"|\bappele[rz]|\bjoindre|\bsoita"
    r"|\bbel(?:len)? (?:ons|mij|me|naar)\b|\bnumeroon|\bvolejte"
    r"|\bzavolej|\bh(?:í|i)vj|\bsuna(?:ț|ţ|t)i"
)
_COMMON_PHONE_WORDS = r"\bcell\b|\bcaller\b"
"""Those that stand in programs too."""
_ALL_PHONE_WORDS = (_PHONE_WORDS, *phone_words.OTHER_SCRIPTS)
_WEAK_PHONE_WORDS = (
    r"\bcall\b|\bcalling\b|\bcallee\b|\brang\b|\bcontact(?:ed|able)?\b|\breach\b|\bdial"
    r"|\bring\b|answering|messages? to|\bcall ?back"
    r"|registered|\bdesk\b|\btext (?:me|us)"
    r"|\bpod numer|\bpelo n(?:ú|u)mero"
    # Whose number it is.
    r"|\b(?:mi|mon|meu|mio|meine?|mijn|mitt|min|moj|můj|mój)"
    r" (?:n(?:ú|u)mero|num(?:é|e)ro|nummer|numer|broj|číslo)"
    r"|\b(?:n(?:uev|ov|uov)o n(?:ú|u)mero|nouveau num(?:é|e)ro|n(?:eue|ieuw|ya|ye) nummer)"
    r"|\b(?:nowy numer|nové číslo|moje číslo)"
    # Where messages are sent, and desks that are called.
    r"|telegram|\bviber\b|\bsignal:|wechat|\bzalo\b|imessage|facetime|\botp\b|recipients?\b"
    r"|switchboard|helpline|reception\b|direct line|durchwahl|festnetz|zentrale\b|ligne directe"
    r"|centralino|centralita|växel"
    r"|klingel|enquir|inquir"
    r"|next of kin|emergency|notfall|\burgence|emergenza|emerg(?:ê|e)ncia"
)
_PHONE_WORDS_BEHIND = (
    r"office|fax|mobile|\bsms\b|\bcell\b|\bdesk\b|\bhome\b|phone"
    r"|\b(?:text|call) me\b|is the best (?:way|number) to (?:reach|call)"
)
_LINE_OF_LETTER = r"(?:\n|\\n|\|)[ \t]{0,3}(?:[TFM](?:[:.] ?| )|[PDCtpmd][:.] ?)"
"""A line in the foot of a letter."""
_TO_VALUE = (
    r"(?:[:=：>.][ \t]?[\"'(\[]{0,3}"
    r"|\b(?:at|on|under|al|au|auf|unter|pod|på|op"
    r"|no|nr|n(?:ú|u)mero|num(?:é|e)ro|nummer|number)\.? )(?=[(+\d])"
)
"""What stands right before the value of a field."""
_EXTENDED = re.compile("[xe#]")


def _without_extension(number: str) -> str:
    extended = _EXTENDED.search(number)
    return number[: extended.start()].rstrip() if extended else number


def _of_length(least: int, most: int) -> Callable[[str], bool]:
    def check(number: str) -> bool:
        number = _without_extension(number)
        length = len(validators.digits_of(number))
        return least <= length <= most and not validators.is_time(number)

    return check


def _is_international(number: str) -> bool:
    number = _without_extension(number)
    if _DECIMAL.fullmatch(number):
        return False
    # In so many groups nothing else is written, even if no such number was given out.
    is_in_groups = len(_GROUPS.findall(number)) >= MANY_GROUPS
    return validators.is_international(number) or (is_in_groups and _of_length(10, 14)(number))


def _is_national(number: str) -> bool:
    # With its area in brackets a number may be shorter.
    return _of_length(9 - number.startswith("(0"), 13)(number)


def _is_dialled_abroad(number: str) -> bool:
    return validators.is_international(_without_extension(number)[2:])


def _is_meant_as_phone(number: str) -> bool:
    number = _without_extension(number)
    fewest = FEWEST_BARE - number.startswith("0") if number.isdecimal() else FEWEST_GROUPED
    if len(validators.digits_of(number)) < fewest:
        return False
    return _is_written_as_phone(number) and not _DECIMAL.fullmatch(number)


def _is_beside_address(number: str) -> bool:
    return _is_meant_as_phone(number) and not _AMOUNT_OR_ADDRESS.fullmatch(number)


def _is_beside_name(number: str) -> bool:
    number = _without_extension(number)
    if not _is_beside_address(number) or _OTHER_BESIDE_NAME.fullmatch(number):
        return False
    return not all(map(_YEAR.fullmatch, _GROUPS.findall(number)))


def _is_labelled_phone(number: str) -> bool:
    number = _without_extension(number)
    if len(validators.digits_of(number)) < FEWEST_LABELLED + number.isdecimal():
        return False
    is_decimal = _DECIMAL.fullmatch(number) and not _WITH_A_DOT.fullmatch(number)
    return _is_written_as_phone(number) and not is_decimal


def _is_written_as_phone(number: str) -> bool:
    is_bare = number.isdecimal() and not number.startswith("0")
    if len(validators.digits_of(number)) > (MOST_BARE if is_bare else MOST_DIGITS):
        return False
    if _PRIVATE_ADDRESS.fullmatch(number) or validators.is_article(number):
        return False
    return not validators.is_time(number) and not _DAY.fullmatch(number)


MANY_GROUPS = 4
MOST_DIGITS = 16
MOST_BARE = 13
"""Digits of one that has nothing between them and no zero before it: a longer one is a device's."""
FEWEST_LABELLED = 6
"""Digits of a number that is the value of a field which is called a telephone number; one more
without anything between them."""
FEWEST_GROUPED = 7
"""Digits of any other number beside such a word."""
FEWEST_BARE = 8
"""Digits of a number without anything between them: with fewer it is how many of something."""
_GROUPS = re.compile(r"\d+")
_DECIMAL = re.compile(r"\+?\d+\.\d+")
_AMOUNT_OR_ADDRESS = re.compile(r"\d{1,2}[ .]\d{3}[ .]\d{3}|\d{1,3}(?:\.\d{1,3}){3}")
_OTHER_BESIDE_NAME = re.compile(
    # Thousands, hours, the code of a place in America.
    r"\d{1,3}(?:[ .]\d{3})+|\d{1,2}\.\d\d ?- ?\d{1,2}\.\d\d|\d{5}-\d{4}"
)
_PRIVATE_ADDRESS = re.compile(r"(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}")
"""An address of a private network; of a public one another shape speaks."""
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_WITH_A_DOT = re.compile(r"\d{3,4}\.\d{4}")
_DAY = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_MAY_BE_NUMBERED = (
    r"\w{0,12}(?:phone|tele|tel|mob|handy|cell|fax|faks|gsm|call|contact|kontakt|whats|ruf|hotline|line|m(?:o|ó)vil"
    r"|cep|sms|festnetz|durchwahl|zentral|service|notruf)|ph\b|tlf|tfn|hp\b|nummer\b|the\b|my\b|ur\b|your\b|his\b|her\b"
    r"|this\b|new\b|on\b|at\b|to\b|is\b|auf\b|unter\b|au\b|al\b"
)
"""Words before a number's `no.` that may be one of a telephone."""
_NAMES_OF_FIELDS = "tel|mob|cell|handy|gsm|sms|whatsapp|msisdn|contact|number|value|text"
"""Beginnings of the names of fields that may hold a telephone number, beside those words."""
_OTHER_NUMBER = re.compile(
    r"(?:order|invoice|tracking|ticket|account|card|ssn|(?<![a-z])id|version|build|release|ref|iban|serial|sku|part|uuid|hash"
    r"|parcel|package|shipment|receipt|contract|meter|rechnung|bestellung|auftrag|vertrag|artikel"
    r"|facture|commande|pedido|factura|contrato|fattura|ordine|faktur[aey]?|заказ|сч[её]т|订单|注文"
    r"|p(?:ó|o)liza|expediente|albar(?:á|a)n|polizza|pratica|apólice|processo|encomenda|dossier"
    r"|colis|paquete|pacco|paket|pakket|paczk[aię]|zam(?:ó|o)wieni[ea]|przesyłk[aię]|umow[ay]"
    r"|police|sendung|aktenzeichen|zaak|polis|ärende|kolli|sag|tilaus"
    # What companies and persons are registered as.
    r"|(?<![a-z])(?:nipc?|nif|cif|nie|dni|kvk|btw|krs|regon|pesel|siren|siret|hrb|hra|cvr|ytj|uid|rsin"
    r"|bsn|cnpj|cpf|rut|cuit|oib|dič|ičo?|cui|tva|mwst|ust-?id(?:nr)?|steuer-?(?:id|nr)|org\.?-?nr|y-tunnus)"
    r"|(?<![a-z])(?:bill|docket|policy|article|model|lot|batch|plot|licen[cs]e|registration|vat"
    r"|tax|barcode|ean|gtin|isbn|issn|imei|imsi|iccid|vin|upc|revision|commit|flight|postcode"
    r"|zip|pin|size|length|offset|limit|total|sum|amount|balance|duration|epoch|timestamp"
    r"|registered (?:under|in|as)|imei of (?:the|your|this) \w{1,10}))"
    r"\W{0,3}(?:number|no|nr|num|id|is|of)?\W{0,4}$"
    # What is numbered is no telephone: lot no. 12, Kundennummer 12.
    r"|(?<![^\W_])(?=[^\W\d_]{2,20}(?:(?<=nummer)|[ .]{1,2}(?:no|nr|n°|nº|№)\.?)[ :]{0,2}$)"
    rf"(?!{_MAY_BE_NUMBERED})"
    # Another field than that of the word.
    # A version of a program, such as Safari/605.1.15.
    r"|[a-z]/$"
    rf"|[\"'](?!\w*(?:{phone_words.LATIN}|{_NAMES_OF_FIELDS}))\w{{1,30}}\\?[\"']\s?:\s?\\?[\"']?$"
)
_OTHER_BEHIND = re.compile(
    r"\\?[\"']\s?:|,? (?:over|by|on|via) (?:the )?(?:tele)?phone"
    # How many of something it is.
    r"|[ \u00a0]?(?:[€$£¥₽%‰]|(?i:bytes?|[kmgt]i?b|ms|µs|secs?|seconds?|minutes?|hours|rows?"
    r"|records?|entries|users?|people|persons|inhabitants|customers|calls|messages|e-?mails|requests?|times"
    r"|pages?|points?|items?|pieces|units|clicks|views|visits|downloads|eur|euros?|usd|gbp|chf|sek"
    r"|nok|dkk|pln|czk|huf|zł|kč|kr|km|kwh|[mg]?hz|px|stück|punkte|nutzer|anrufe|zeilen|personen"
    r"|einwohner|appels|utilisateurs|llamadas|usuarios|habitantes?)(?![^\W_]))"
)


_DIGITS = r"\d(?:[ .\-/()]{0,2}\d){6,14}"
_GROUPED = r"(?=\d{0,9}[ .\-/()])"
_GROUPED_OR_LONG = r"(?=\d{9}|\d{0,9}[ .\-/()])"
_NEXT_CELL = r"[\"']?[ \t]?(?:[,;|\n\t]|·)[ \t]?[\"'<]?"
_ADDRESS_BEFORE = rf"@[\w.-]{{3,60}}{_NEXT_CELL}"
_TRUNK = r"0[1-9]\d{8,9}"
_ADDRESS_BEHIND = r"(?:[,;|\n\t]|·)[ \t]?[\"'<]?[\w.+-]{1,30}@"

_CAPITAL = r"[A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĢĪĶĻŁŃŅŇŐŘŚŞŠŢŤŪŮŰŹŻŽΑ-ΩЀ-Я]"
_NAME = rf"(?<![\w.]){_CAPITAL}[\w'’-]{{1,20}}(?: [\w'’.-]{{1,20}})? {_CAPITAL}[\w'’-]{{1,20}}"
"""The name of a person, as far as that can be told: words with capital letters."""
_TO_NEXT = r"(?:[\"']?(?:[,;|\t]|</td><td>|·)[ \t]?[\"']?| \(| {2,8})"
"""From a cell to the next one, or to a number in brackets."""


def _written(
    pattern: str,
    check: Callable[[str], bool] = bool,
    *,
    gates: str,
    longest: int = 60,
) -> Shape:
    """A number that needs no words beside it."""
    return Shape("PHONE", gates, f"{pattern}{TO}", longest, check=check)


def _unless_another(shape: Shape) -> Shape:
    """The same, but for numbers that are called otherwise: of an order, of a version."""
    return dataclasses.replace(
        shape, unless=_OTHER_NUMBER, unless_reach=40, unless_behind=_OTHER_BEHIND
    )


def _beside(
    words: str = "", words_behind: str = "", rare_words: str = "", written: str = ""
) -> Shape:
    """A number that words before it or behind it speak of."""
    number = _written(f"{_PHONE_DIGIT}{written}{_ANY}", _is_meant_as_phone, gates=gate(_DIGITS))
    return dataclasses.replace(
        _unless_another(number), words=words, words_behind=words_behind, rare_words=rare_words
    )


def _after(
    before: str,
    number: str = _ANY_LABELLED,
    check: Callable[[str], bool] = _is_labelled_phone,
    *,
    gates: str = "",
    longest: int = 40,
    rare_words: str = "",
) -> Shape:
    """A number right after something that says what it is, such as the name of its field."""
    label = Shape(
        "PHONE",
        gates,
        before,
        longest,
        rest=re.compile(f"{_PHONE_DIGIT}{number}{TO}"),
        longest_rest=60,
        check=check,
        rare_words=rare_words,
    )
    return _unless_another(label)


SHAPES = (
    _written(
        f"{_PHONE_AT}(?:{_NORTH_AMERICAN})",
        _of_length(10, 11),
        gates=gate(_NORTH_AMERICAN),
        longest=40,
    ),
    _written(
        rf"{_PHONE_AT}(?:{_NORTH_AMERICAN_SPACED})(?! +\d)",
        gates=gate(_NORTH_AMERICAN_SPACED),
        longest=40,
    ),
    _written(
        rf"(?=[+(])(?:(?<!{JOINED})(?<![.+])|(?<=\\[nrt])){_INTERNATIONAL}",
        _is_international,
        gates=rf"{_PLUS}(?:{_PART}){{2,8}}\b",
    ),
    _written(
        rf"(?=00)(?:(?<![\w.+/-])|(?<=\\[nrt])){_WITH_ZEROS}",
        _is_dialled_abroad,
        gates=gate(_WITH_ZEROS),
    ),
    _written(
        f"{_PHONE_AT_ZERO}(?:{_NATIONAL})",
        _is_national,
        # Not the later part of a date.
        gates=r"(?:[^\w.\-/:]|\\[nrt])(?:\(0[1-9]\d{0,4}\)[ .\-/]?|0[1-9]\d{0,4}[ .\-/])"
        r"(?:\d{5,8}|\d{2,8}[ .\-/]\d{2,8}(?:[ .\-/]\d{2,8}){0,3})\b"
        r"|\([1-9]\d{1,3}\) ?[2-9]\d{2} ?\d{3} ?\d{3}\b|\([2-9]\d{2}\) ?\d{7}\b"
        rf"|[^\w.\-/:](?:{_EASTERN})\b"
        r"|(?:\(\d{2}\) ?|[^\w.\-/:]\d{2}[ -])9?[1-9]\d{3}-\d{4}\b",
    ),
    # A zero for the trunk, and nothing between the digits.
    _unless_another(
        _written(
            rf"{_PHONE_AT_ZERO}{_TRUNK}",
            validators.is_trunk_number,
            gates=gate(_TRUNK),
            longest=12,
        )
    ),
    _after(_LINE_OF_LETTER, gates=_LINE_OF_LETTER + r"[(+\d]"),
    *(_after(_TO_VALUE, rare_words=words) for words in _ALL_PHONE_WORDS),
    *(_beside(rare_words=words) for words in _ALL_PHONE_WORDS),
    _beside(_COMMON_PHONE_WORDS),
    _beside(words_behind=_PHONE_WORDS_BEHIND),
    # In the cell or line before or after an e-mail address.
    dataclasses.replace(
        _beside(words_behind=_ADDRESS_BEHIND, written=_GROUPED), check=_is_beside_address
    ),
    dataclasses.replace(
        _after(
            rf"{_ADDRESS_BEFORE}(?=[(\d])",
            f"{_GROUPED}{_ANY}",
            _is_beside_address,
            gates=rf"{_ADDRESS_BEFORE}\(?{_DIGITS}\b",
            longest=70,
        ),
        longest_gate=130,
    ),
    # After a name, in the next cell or in brackets.
    dataclasses.replace(
        _after(
            rf"{_NAME}{_TO_NEXT}(?=[(\d])",
            f"{_GROUPED}{_ANY}",
            _is_beside_name,
            gates=rf"[a-z\x80-\xff]{_TO_NEXT}\(?"
            r"(?:\d{3,4}\)?[ \-]\d{4}|\d{2,3}\)?(?:[ \-]\d{2,3}){2,3})\b",
            longest=80,
        ),
        longest_gate=110,
    ),
    # Beside weaker words, with something between the digits, or ten of them.
    _beside(_WEAK_PHONE_WORDS, written=_GROUPED_OR_LONG),
    _beside(rare_words=phone_words.VERBS, written=_GROUPED_OR_LONG),
)
