"""Fields: which names of results and files stand for personal data, and of which kind it is."""

import re
import unicodedata
from collections.abc import Container, Mapping
from typing import NamedTuple

from divingbell.border.privacy.kinds import KINDS
from divingbell.settings.patterns import Pattern

LONGEST_NAME = 200
"""Characters of a name that can be one of a field."""
LONGEST_PATH = 1000
MOST_COMPARISONS = 1_000_000
"""Comparisons with patterns for one result or file. Measured: a microsecond each."""
MOST_CACHED = 50_000
MOST_WORDS = 5
"""Words of a name, from its end, that are read together: `date of birth` has three."""

_WORDS_OF_KINDS = {
    "EMAIL": (
        "email emailaddress mail mailaddress mailadresse emailadresse courriel adressemail "
        "adresseemail correo correoelectronico"
    ),
    "NAME": (
        "firstname lastname surname fullname middlename maidenname givenname familyname forename "
        "birthname namefirst namelast nickname personname customername clientname contactname "
        "patientname employeename guestname passengername studentname membername recipientname "
        "sendername buyername cardholder cardholdername accountholder accountholdername "
        "vorname nachname familienname geburtsname kundenname prenom nomdefamille nomcomplet "
        "nomclient apellido nombrecompleto nombredepila primerapellido segundoapellido"
    ),
    "ADDRESS": (
        "address addressline street streetname streetaddress streetline strasse anschrift adresse "
        "wohnort rue direccion domicilio calle"
    ),
    "PHONE": (
        "phone phonenumber phoneno telephone telephonenumber telephoneno tel mobile mobilenumber "
        "mobileno mobilephone mobilephonenumber cellphone cellphonenumber cellnumber msisdn fax "
        "faxnumber whatsapp telefon telefonnummer telefonnr handy handynummer mobiltelefon "
        "mobilnummer rufnummer numerodetelephone telefono numerodetelefono movil celular"
    ),
    "BIRTH_DATE": (
        "dob birthdate birthday bday birthdt dateofbirth geburtsdatum geburtstag datenaissance "
        "datedenaissance fechanacimiento fechadenacimiento"
    ),
    "SSN": "ssn socialsecurity socialsecuritynumber socialsecurityno",
    "NATIONAL_ID": (
        "nationalid nationalidnumber nationalinsurancenumber nino identitynumber identitycard "
        "identitycardnumber idcardnumber driverslicense driverslicensenumber driverlicense "
        "driverlicensenumber driverslicence drivinglicence drivinglicencenumber aadhaar "
        "aadhaarnumber curp cpf dni nie personnummer ausweisnummer personalausweis "
        "personalausweisnummer fuehrerschein sozialversicherungsnummer svnummer "
        "numerosecuritesociale numerodesecuritesociale"
    ),
    "TAX_ID": "taxid taxnumber taxpayerid tin steuerid steuernummer nif numerofiscal",
    "PASSPORT": (
        "passport passportnumber passportno passportid reisepass reisepassnummer passeport "
        "numeropasseport numerodepasseport pasaporte numeropasaporte numerodepasaporte"
    ),
    "IBAN": "iban ibannumber bankaccount bankaccountnumber kontonummer",
    "CARD": (
        "cardnumber cardno creditcard creditcardnumber debitcard debitcardnumber ccnumber ccnum "
        "kreditkarte kreditkartennummer numerodecarte numerodetarjeta"
    ),
    "PASSWORD": "password passwd passphrase passwort motdepasse contrasena",
    "API_KEY": (
        "apikey apitoken accesstoken refreshtoken authtoken bearertoken clientsecret secretkey "
        "secretaccesskey"
    ),
}
"""Names of fields without the signs between their words. `name`, `title`, `city` and `id` are not
among them: a product has these too."""
_NOT_PERSONAL = (
    # Addresses of machines. Public ones of IP are found by their shape.
    "ipaddress macaddress webaddress urladdress hostaddress serveraddress networkaddress "
    "memoryaddress baseaddress startaddress endaddress busaddress walletaddress contractaddress "
    "tokenaddress bindaddress listenaddress remoteaddress localaddress "
    # What stands beside a value: {"phones": [{"value": …, "type": "home"}]}.
    "id uuid guid type kind label category country countrycode countryname state statecode "
    "province region continent primary default verified valid status createdat updatedat language "
    "locale timezone currency format source"
)
_QUALIFIERS = frozenset({
    "home", "work", "office", "private", "personal", "business", "primary", "secondary", "main",
    "alternate", "other", "first", "second", "billing", "shipping", "line", "value", "raw", "text",
})  # fmt: skip
"""Words behind a name that leave its kind as it is: `phone_home`, `address_line_1`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KINDS_BY_WORDS = {
    **dict.fromkeys(_NOT_PERSONAL.split(), ""),
    **{word: kind for kind, words in _WORDS_OF_KINDS.items() for word in words.split()},
}


class Field(NamedTuple):
    """The kind of what a field holds."""

    kind: str
    """None, `""`, if it is known to hold nothing personal."""
    is_meant: bool
    """Whether the settings say so. A name alone does not say that each value is of its kind."""


class Fields:
    """Kinds of fields, by patterns of the settings, then by plain names.

    A pattern is compared with `server.tool.field`, where the field is the last name or all names
    that lead to it with dots between them; for a file with `files.customers.csv.field`. The first
    one that matches counts. `kinds` are those that are looked for, one's own among them; a field
    of any other kind holds nothing personal.

    Raises:
        ValueError: a pattern is longer than one may be.
    """

    def __init__(
        self, patterns: Mapping[str, str] | None = None, kinds: Container[str] = KINDS
    ) -> None:
        self._kinds = kinds
        self._patterns = [
            (Pattern(text), Field(kind if kind in kinds else "", True))
            for text, kind in (patterns or {}).items()
        ]

    def of(self, origin: str) -> "FieldsOfOrigin":
        """Return the fields of one result of a tool, `server.tool`, or of a file."""
        return FieldsOfOrigin(origin, self._patterns, self._kinds)


class FieldsOfOrigin:
    """The fields of one result or file. Remembers those it was asked about."""

    def __init__(
        self, origin: str, patterns: list[tuple[Pattern, Field]], kinds: Container[str]
    ) -> None:
        self._origin = origin
        self._patterns = patterns
        self._kinds = kinds
        self._by_name: dict[str, Field | None] = {}
        self._left = MOST_COMPARISONS

    @property
    def is_spent(self) -> bool:
        """Whether there were more comparisons with patterns than are made."""
        return self._left <= 0

    def field(self, name: str, path: str = "") -> Field | None:
        """Return what is known of a field; None if its name says nothing."""
        if len(name) > LONGEST_NAME:
            return None
        if path != name and self._patterns and len(path) <= LONGEST_PATH:
            by_path = self._meant(path)
            if by_path is not None:
                return by_path
        if name not in self._by_name:
            if len(self._by_name) >= MOST_CACHED:
                self._by_name.clear()
            self._by_name[name] = self._meant(name) or self._usual(name)
        return self._by_name[name]

    def _meant(self, name: str) -> Field | None:
        text = f"{self._origin}.{name}"
        for pattern, field in self._patterns:
            self._left -= 1
            if self._left <= 0:
                return None
            if pattern.matches(text):
                return field
        return None

    def _usual(self, name: str) -> Field | None:
        kind = usual_kind(name)
        return None if kind is None else Field(kind if kind in self._kinds else "", False)


def usual_kind(name: str) -> str | None:
    """Return the kind that a field of this name usually holds.

    Returns `""` for one that holds nothing personal, and None if the name does not say it.
    """
    words = [word.lower() for word in _WORD.findall(_in_ascii(name))]
    while len(words) > 1 and words[-1] in _QUALIFIERS and _kind_of_words(words) is None:
        del words[-1]
    return _kind_of_words(words)


def _kind_of_words(words: list[str]) -> str | None:
    """The kind that the last words say, as many of them as there is a kind for."""
    for count in range(min(len(words), MOST_WORDS), 0, -1):
        joined = "".join(words[-count:])
        for each in (joined, joined.removesuffix("s"), joined.removesuffix("es")):
            if each in _KINDS_BY_WORDS:
                return _KINDS_BY_WORDS[each]
    return None


def _in_ascii(name: str) -> str:
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return "".join(sign for sign in plain if not unicodedata.combining(sign))
