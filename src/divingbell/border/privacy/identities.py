"""Shapes of identity, tax and passport numbers, and of dates of birth."""

import functools

from divingbell.border.privacy import validators
from divingbell.border.privacy.numerals import AT, TO, gate
from divingbell.border.privacy.shape import IS_CUT, MARK, Shape

_SSN_WORDS = r"\bssn\b|ssn[_\"':= #]|social.?security|\bsocial\b"


_SSNS = (
    Shape(
        "SSN",
        gate(r"\d{3}-\d{2}-\d{4}"),
        rf"{AT}\d{{3}}-\d{{2}}-\d{{4}}{TO}",
        longest=12,
        check=validators.is_ssn,
    ),
    Shape(
        "SSN",
        gate(r"\d{3}[ .-]?\d{2}[ .-]?\d{4}"),
        rf"{AT}\d{{3}}[ .-]?\d{{2}}[ .-]?\d{{4}}{TO}",
        longest=12,
        check=validators.is_ssn,
        words=_SSN_WORDS,
    ),
    # Of one that was cut, the form says enough once its third part has begun.
    Shape(
        "SSN",
        rf"(?:[^\w.]|\\[nrt])\d{{3}}-\d{{2}}-\d{{1,3}}{MARK}",
        rf"{AT}\d{{3}}-\d{{2}}-\d{{1,3}}{IS_CUT}",
        longest=10,
        longest_gate=14,
        check=validators.begins_ssn,
    ),
    Shape(
        "SSN",
        rf"(?:[^\w.]|\\[nrt])\d{{3}}[ -]?\d{{2}}(?:[ -]?\d{{0,3}}){MARK}",
        rf"{AT}\d{{3}}[ -]?\d{{2}}(?:[ -]?\d{{0,3}}){IS_CUT}",
        longest=10,
        longest_gate=14,
        check=validators.begins_ssn,
        words=_SSN_WORDS,
    ),
)


def _number(kind: str, expression: str, module: str, words: str = "") -> Shape:
    """A number of up to 25 characters whose check digits python-stdnum knows."""
    return Shape(
        kind,
        gate(expression),
        f"{AT}(?:{expression}){TO}",
        longest=26,
        check=functools.partial(validators.has_check_digits, module),
        words=words,
    )


_NATIONAL = "NATIONAL_ID"
_TAX = "TAX_ID"
_NUMBERS = (
    # Those whose form and check digits say enough.
    _number(
        _NATIONAL,
        r"[1-478] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}",
        "fr.nir",
    ),
    _number(_NATIONAL, r"(?i:[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z])", "it.codicefiscale"),
    _number(_NATIONAL, r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", "be.nn"),
    _number(_NATIONAL, r"756\.\d{4}\.\d{4}\.\d{2}", "ch.ssn"),
    _number(_NATIONAL, r"\d{3}\.\d{3}\.\d{3}-\d{2}", "br.cpf"),
    # Those that need a word.
    _number(_NATIONAL, r"\d{8}-?[A-Z]", "es.dni", r"\bdni\b|\bnif\b|documento|identidad"),
    _number(_NATIONAL, r"[XYZ]-?\d{7}-?[A-Z]", "es.nie", r"\bnie\b|extranjero|identidad"),
    _number(_NATIONAL, r"\d{3} ?\d{3} ?\d{4}", "gb.nhs", r"\bnhs\b|national.?health"),
    _number(_NATIONAL, r"\d{9}", "nl.bsn", r"\bbsn\b|burgerservice|sofinummer"),
    _number(_NATIONAL, r"\d{11}", "pl.pesel", r"pesel"),
    _number(
        _NATIONAL,
        r"(?:19|20)?\d{6}[-+]?\d{4}",
        "se.personnummer",
        r"personnummer|personal.?identity",
    ),
    _number(
        _NATIONAL, r"\d{6}[-+A]\d{3}[0-9A-Y]", "fi.hetu", r"\bhetu\b|henkil|personal.?identity"
    ),
    _number(_NATIONAL, r"\d{6} ?\d{5}", "no.fodselsnummer", r"f(?:ø|o)dsels|personnummer"),
    _number(_NATIONAL, r"\d{6}-?\d{4}", "dk.cpr", r"\bcpr\b"),
    _number(_NATIONAL, r"\d{4} ?\d{4} ?\d{4}", "in_.aadhaar", r"aadha?ar|\buid(?:ai)?\b"),
    _number(_NATIONAL, r"\d{3}[ -]?\d{3}[ -]?\d{3}", "ca.sin", r"\bsin\b|social.?insurance"),
    _number(_NATIONAL, r"\d{11}", "br.cpf", r"\bcpf\b"),
    _number(_NATIONAL, r"\d{17}[0-9X]", "cn.ric", r"\bid\b|identity|resident"),
    _number(_TAX, r"\d{2} ?\d{3} ?\d{3} ?\d{3}", "de.idnr", r"steuer|\bidnr\b|\btax\b|\btin\b"),
    _number(_TAX, r"\d{3}[ -]?\d{3}[ -]?\d{3}", "au.tfn", r"\btfn\b|tax.?file"),
    _number(_TAX, r"\d{9}", "pt.nif", r"\bnif\b|contribuinte"),
    _number(_TAX, r"[A-Z]{5}\d{4}[A-Z]", "in_.pan", r"\bpan\b|income.?tax|permanent.?account"),
    _number(_TAX, r"\d{2}-\d{7}", "us.ein", r"\bein\b|employer.?id|\btax\b|\btin\b"),
    _number(_TAX, r"9\d{2}-(?:[5-8]\d|9[0-24-9])-\d{4}", "us.itin", r"\bitin\b|\btax|\btin\b"),
)

_INSURANCE = r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]"
_BRITISH = Shape(  # without check digits
    _NATIONAL,
    gate(_INSURANCE),
    f"{AT}{_INSURANCE}{TO}",
    longest=14,
    words=r"\bnino\b|national.?insurance|\bni\b.?(?:number|no)|insurance",
)
_PASSPORT = Shape(
    "PASSPORT",
    r"\b[A-Z0-9]{6,12}\b",
    r"(?:(?<![\w-])|(?<=\\[nrt]))[A-Z]{0,3}\d[A-Z0-9]{4,9}(?![\w-])",
    longest=14,
    check=lambda number: len(validators.digits_of(number)) >= 4,
    words=r"passport|reisepass|passeport|pasaporte|passaporto|paspoort",
)

_MONTH = (
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
    r"|Januar|Februar|M(?:ä|a)rz|Mai|Juni|Juli|August|Oktober|Dezember"
    r"|janvier|f(?:é|e)vrier|mars|avril|juin|juillet|ao(?:û|u)t|septembre|octobre|novembre|d(?:é|e)cembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?"
_DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    rf"|{_DAY} (?:of )?(?:{_MONTH}),? \d{{4}}|(?:{_MONTH}) {_DAY},? \d{{4}}"
)
_BIRTH_DATE = Shape(
    "BIRTH_DATE",
    rf"\b(?i:{_DATE})\b",
    rf"(?i)(?:(?<![\w./-])|(?<=\\[nrt]))(?:{_DATE})(?![\w/-])",
    longest=32,
    check=lambda date: validators.is_date(date) or " " in date,
    words=(
        r"\bborn\b|birth|\bdob\b|d\.o\.b|geboren|geburts|\bn(?:é|e)e? le\b|naissance|nacimiento"
        r"|nacid[oa]|nascita|nat[oa] il"
    ),
)

SHAPES = (*_SSNS, *_NUMBERS, _BRITISH, _PASSPORT, _BIRTH_DATE)
