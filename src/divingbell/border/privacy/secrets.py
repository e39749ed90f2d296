"""Shapes of secrets: keys of services, private keys, passwords in assignments and addresses."""

import itertools
import re
from collections.abc import Iterator

from divingbell.border.privacy import validators
from divingbell.border.privacy.shape import IS_CUT, MARK, Shape

LONGEST_TOKEN = 8192
LONGEST_KEY = 16384
"""Characters of a private key: RSA with 16,384 bits has 12,700."""
_KEY_AT = r"(?:(?<![\w-])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"

_SERVICES = {
    "AWS": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "GitHub": r"gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,244}",
    "GitLab": r"gl(?:pat|dt|rt|ptt|oas|cbt|ft|soat|agent|imt)-[\w.-]{20,100}",
    "Slack": r"xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{20,250}",
    "Stripe": r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/]{32,64}",
    "Google": r"AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,500}",
    "OpenAI": r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,250}",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "PyPI": r"pypi-AgE[\w-]{50,500}",
    "Hugging Face": r"hf_[A-Za-z0-9]{34}",
    "SendGrid": r"SG\.[\w-]{22}\.[\w-]{43}",
    "Twilio": r"(?:SK|AC)[0-9a-f]{32}",
    "DigitalOcean": r"do[opr]_v1_[a-f0-9]{64}",
    "Shopify": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "Mailgun": r"key-[0-9a-f]{32}",
    "Telegram": r"\d{8,10}:AA[\w-]{33}",
    "Databricks": r"dapi[0-9a-f]{32}(?:-\d)?",
    "Linear, Notion": r"lin_api_[A-Za-z0-9]{32,64}|ntn_[A-Za-z0-9]{40,60}",
    "Postman": r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    "Grafana": r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,250}",
    "HashiCorp": r"hvs\.[\w-]{24,250}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}",
    "Docker": r"dckr_(?:pat|oat)_[\w-]{27,60}",
    "Square": r"sq0(?:atp|csp)-[\w-]{22,50}",
    "Groq, Replicate, xAI": r"gsk_[A-Za-z0-9]{48,60}|r8_[A-Za-z0-9]{37,40}|xai-[A-Za-z0-9]{60,100}",
    "Perplexity, Fireworks": r"pplx-[A-Za-z0-9]{40,60}|fw_[A-Za-z0-9]{22,30}",
    "New Relic, Atlassian": r"NRAK-[A-Z0-9]{27}|ATATT3[\w=-]{100,250}",
    "Figma, Supabase, Sentry": r"figd_[\w-]{38,50}|sbp_[a-f0-9]{40}|sntrys_[\w+/=]{40,500}",
    "Asana, Airtable": r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
}
"""Keys that say whose they are, by how they begin."""


def _is_key(key: str) -> bool:
    # `sk-learn-…` and names in small letters are words.
    return bool(re.search(r"\d", key)) and validators.entropy(key) >= 3.0


def _service(expression: str) -> Shape:
    return Shape(
        "API_KEY",
        rf"(?:\b|\\[nrt])(?:{_shortened(expression)})",
        rf"{_KEY_AT}(?:{expression})(?![\w-])",
        longest=600,
        check=_is_key,
    )


def _shortened(expression: str) -> str:
    """The same with the least of the last repetition, so that no key is followed to its end."""
    return re.sub(r"\{(\d+),\d+\}(?=\||\Z)", r"{\1}", expression)


LEAST_OF_SECRET = 8
"""Characters of a secret that was cut: with fewer, as in `ghp_...`, nothing of it is told."""
_LAST_PART = re.compile(r"(.*)(\[[^\]]*\]|\\[wd])\{\d+(?:,\d+)?\}")
"""The secret part of a key: all before it says whose it is."""
_WORDS_BEFORE = re.compile(r"(?:[A-Za-z]+\d{0,2}[-_.])+")


def _alternatives(expression: str) -> Iterator[str]:
    """Yield what an expression has a choice of, without that in parentheses."""
    return (match[0] for match in re.finditer(r"(?:\([^)]*\)|[^|(])+", expression))


def _begun(most: str) -> str:
    """An expression for keys of all services, with so many characters of the secret part."""
    every = itertools.chain.from_iterable(map(_alternatives, _SERVICES.values()))
    parts = filter(None, map(_LAST_PART.match, every))
    return "|".join(f"{part[1]}{part[2]}{{{LEAST_OF_SECRET}{most}}}" for part in parts)


def _is_begun(key: str) -> bool:
    """Whether there is enough of a secret, and not words: `sk-ant-api03-...` tells nothing."""
    secret = key[words.end() if (words := _WORDS_BEFORE.match(key)) else 0 :]
    is_mixed = re.search(r"\d", secret) or not (secret.islower() or secret.isupper())
    return len(secret) >= LEAST_OF_SECRET and bool(is_mixed) and validators.entropy(secret) >= 2.5


_CUT_KEY = Shape(
    "API_KEY",
    rf"(?:\b|\\[nrt])(?:{_begun('')})",
    rf"{_KEY_AT}(?:{_begun(',250')}){IS_CUT}",
    longest=330,
    longest_gate=96,
    check=_is_begun,
)
_JWT = Shape(
    "API_KEY",
    r"\beyJ[A-Za-z0-9_-]{8}",
    rf"{_KEY_AT}(?=eyJ[\w-]{{8}})",
    longest=12,
    rest=re.compile(
        # Its third part may be empty, or have been cut.
        r"eyJ[\w-]{8,2000}+\.[\w-]{2,4000}+"
        rf"(?:\.(?:[\w-]{{10,2000}}+|(?![\w-])|[\w-]{{1,9}}{IS_CUT})|(?=…))"
    ),
    longest_rest=LONGEST_TOKEN,
)
_BEARER = Shape(
    "API_KEY",
    r"(?i:bearer|basic|apikey|token)(?: |%20|\+)[A-Za-z0-9._~+/=-]{12}",
    (
        r"(?i)(?:bearer|(?<=authorization: )basic|(?<=authorization\": \")basic|apikey|token)"
        r"(?: |%20|\+)(?=[A-Za-z0-9._~+/-]{12})"
    ),
    longest=30,
    rest=re.compile(r"[A-Za-z0-9._~+/-]{16,4000}+={0,2}"),
    longest_rest=4000,
    check=lambda token: _is_opaque(token) and _is_key(token),
)
_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_PEM = Shape(
    "PRIVATE_KEY",
    f"-----BEGIN {_PEM_NAME}",
    f"(?=-----BEGIN {_PEM_NAME})",
    longest=70,
    rest=re.compile(
        # To its end; where that is missing, as far as there are lines of base64. Their ends may be
        # escaped. No key reaches into the next one.
        f"-----BEGIN {_PEM_NAME}"
        rf"(?:(?:[^-]|-(?!----)){{8,{LONGEST_KEY}}}+-----END {_PEM_NAME}"
        r"|(?:(?:\s|\\[nr]|\\){0,6}[A-Za-z0-9+/=]{16,100}+){1,400})"
    ),
    longest_rest=LONGEST_KEY + 120,
)
_AGE = Shape(
    "PRIVATE_KEY",
    r"AGE-SECRET-KEY-1[0-9A-Z]{20}",
    r"(?<![\w-])AGE-SECRET-KEY-1[0-9A-Z]{20,80}(?!\w)",
    longest=100,
)

_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|token|api[_-]?key"
    r"|access[_-]?key|auth[_-]?key|private[_-]?key|client[_-]?secret|credentials?|account[_-]?key"
)
_HTML_QUOTE = "&(?:quot|apos|#39|#34|#x27|#x22);"
_TO = rf"(?:\\{{0,4}}[\"']{{1,2}}|{_HTML_QUOTE})?\]?\s{{0,3}}(?::=|=>|[:=])\s{{0,3}}"


def _is_opaque(value: str) -> bool:
    """No name, path or call of a program, but something that was made by chance or thought up."""
    if (cut := _CUT_AT_END.search(value)) and cut.start():
        value = value[: cut.start()]
        # The first part of a token that is signed tells nothing.
        if _FIRST_PART.fullmatch(value) or not _is_begun(value):
            return False
    if _PROGRAM.search(value) or _PLACEHOLDER.search(value):
        return False
    return validators.is_random(value)


_PROGRAM = re.compile(
    r"^[$<{%*\[(]|[(){}<>\[\]]|^[A-Za-z_]+\d{0,2}(?:[./:-][A-Za-z_]+\d{0,2})+$|^[a-z_]+\d{0,2}$|^[A-Z_]+\d{0,2}$"
    r"|^https?:|^/[\w/.-]+$|^\.|\.(?:py|js|json|md|txt|toml|yaml)$"
)
_CUT_AT_END = re.compile(rf"{MARK}\Z")
_FIRST_PART = re.compile(r"eyJ[\w-]*")
_PLACEHOLDER = re.compile(
    r"your|example|change.?me|placeholder|xxx|\.\.\.|…|\*\*\*|dummy|redacted", re.I
)
_ASSIGNED = Shape(
    "PASSWORD",
    rf"(?i:{_NAMES})(?:[\\\"'\]]{{0,6}}|{_HTML_QUOTE})\s{{0,3}}(?::=|=>|[:=])\s{{0,3}}[^\s]{{6}}",
    rf"(?i)(?:{_NAMES}){_TO}",
    longest=40,
    rest=re.compile(
        # Quotes may be escaped, in JSON within JSON twice; CSV and SQL write two for one.
        r"\"\"(?![,;)\]}=:])([^\"\\\s]{6,256}+)(?=\"\")|''(?![,;)\]}=:])([^'\\\s]{6,256}+)(?='')"
        r"|\\{0,4}\"([^\"\\\s]{6,256}+)(?=\\{0,4}\")|\\{0,4}'([^'\\\s]{6,256}+)(?=\\{0,4}')"
        rf"|{_HTML_QUOTE}([^\"'\\\s&]{{6,256}}+)(?=&)"
        r"|[^\"'\\\s,;&]{6,256}+(?![\"'(\\])"
    ),
    longest_rest=260,
    check=_is_opaque,
)
_IN_ADDRESS = Shape(
    "PASSWORD",
    r"[a-z]://[^\s/@\"'<>:]{0,64}:[^\s@\"'<>]{1,128}@",
    r"(?<=[A-Za-z])://[^\s/@\"'<>:]{0,64}:(?=[^\s@\"'<>]{1,128}@)",
    longest=200,
    rest=re.compile(r"([^\s@\"'<>]{1,128})@[\w\[]"),
    longest_rest=130,
    check=lambda password: not re.match(r"[${<*\[]|%[sd(]|\.\.\.|…|\d{2,5}/", password),
)

SHAPES = (
    *map(_service, _SERVICES.values()),
    _CUT_KEY,
    _JWT,
    _BEARER,
    _PEM,
    _AGE,
    _ASSIGNED,
    _IN_ADDRESS,
)
