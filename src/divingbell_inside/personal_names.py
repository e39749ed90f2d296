"""Names of fields and columns that hold something personal, whoever has written them.

Host and inside share this file: the host learns by it, the inside tells by it what it may learn.
"""

import functools
import re
import unicodedata

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
        "mobilnummer rufnummer numerodetelephone telefono numerodetelefono movil celular telno "
        "contactnumber contactno contactphone gsm gsmnumber mobil telefone numerodetelefone "
        "telemovel telefoon telefoonnummer mobiel cellulare numeroditelefono numertelefonu "
        "telefonkontaktowy komorka puhelin puhelinnumero telefonszam phoneprivate telefonprivat"
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


@functools.lru_cache(4096)
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
