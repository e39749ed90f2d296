"""Fields are personal by their plain names, and by patterns of the settings."""

import pytest

from divingbell.border.privacy import fields
from divingbell.border.privacy.fields import Field, Fields
from divingbell.border.privacy.kinds import KINDS, PERSONAL, SECRETS
from divingbell_inside.personal_names import usual_kind

PLAIN = {
    "EMAIL": (
        "email", "e_mail", "eMail", "E-Mail", "EMAIL", "emails", "customer_email", "emailAddress",
        "email_address", "Email Address", "contact.email", "email2", "email_work", "courriel",
        "correo electrónico",
    ),
    "NAME": (
        "first_name", "firstName", "first-name", "First Name", "FIRSTNAME", "FirstName", "surname",
        "last_name", "full_name", "customer_name", "billing_first_name", "Vorname", "Prénom",
        "apellidos", "nombre_completo",
    ),
    "ADDRESS": (
        "street", "address", "address1", "address_line_2", "addressLine1", "shipping_address",
        "Straße", "STRASSE", "home_addresses", "dirección",
    ),
    "PHONE": ("phone", "mobile", "phone_number", "phone_home", "phones", "Telefon", "teléfono"),
    "BIRTH_DATE": ("dob", "DOB", "birth_date", "dateOfBirth", "Date of Birth", "Geburtsdatum"),
    "SSN": ("ssn", "SSN", "social_security_number"),
    "IBAN": ("iban", "IBAN"),
    "PASSPORT": ("passport", "passport_no", "passportNumber"),
    "TAX_ID": ("tax_id",),
    "CARD": ("card_number", "creditCard"),
    "PASSWORD": ("password",),
    "API_KEY": ("api_key", "clientSecret"),
}  # fmt: skip
OTHERS = (
    "name", "title", "city", "id", "product_name", "file_name", "hostname", "email_sent", "emailed",
    "email_count", "address_id", "phone_type", "ip_address", "macAddress", "wallet_address", "",
    "streetlight", "mobile_app", "日本語", "a" * 300, "first", "value",
)  # fmt: skip


@pytest.mark.parametrize(("kind", "names"), PLAIN.items())
def test_a_plain_name_says_the_kind_in_any_spelling(kind: str, names: tuple[str, ...]) -> None:
    assert kind in KINDS
    assert {name: usual_kind(name) for name in names} == dict.fromkeys(names, kind)


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_product_has_too_is_not_personal(name: str) -> None:
    assert not usual_kind(name)


def test_patterns_of_the_settings_come_before_plain_names() -> None:
    patterns = {
        "crm.*.name": "NAME",
        "crm.find.notes.text": "ADDRESS",
        "shop.*.address": "NONE",
        "crm.*.badge": "BADGE_NUMBER",
    }
    known = Fields(patterns, {*KINDS, "BADGE_NUMBER"})
    crm, shop = known.of("crm.find"), known.of("shop.find")
    assert crm.field("name", "customers.name") == Field("NAME", True)
    assert shop.field("name", "products.name") is None
    assert crm.field("text", "notes.text") == Field("ADDRESS", True)
    assert crm.field("text", "reply.text") is None
    assert shop.field("address") == Field("", True)
    assert crm.field("address") == Field("ADDRESS", False)
    assert crm.field("badge") == Field("BADGE_NUMBER", True)


def test_the_first_pattern_that_matches_counts() -> None:
    known = Fields({"crm.products.name": "NONE", "crm.*.name": "NAME"})
    assert known.of("crm.products").field("name") == Field("", True)
    assert known.of("crm.people").field("name") == Field("NAME", True)


def test_only_kinds_that_are_looked_for_are_personal() -> None:
    secrets = Fields({"crm.*.name": "NAME"}, kinds=SECRETS).of("crm.find")
    assert secrets.field("name") == Field("", True)
    assert secrets.field("email") == Field("", False)
    assert secrets.field("password") == Field("PASSWORD", False)
    assert Fields(kinds=PERSONAL).of("crm.find").field("password") == Field("", False)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1000 characters"):
        Fields({"x" * 2000: "NAME"})


def test_a_million_names_are_compared_with_patterns_so_often_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fields, "MOST_COMPARISONS", 100)
    monkeypatch.setattr(fields, "MOST_CACHED", 10)
    known = Fields({"crm.*.name": "NAME"}).of("crm.find")
    assert known.field("name") == Field("NAME", True)
    for number in range(200):
        known.field(f"field{number}")
    assert known.is_spent
    assert len(known._by_name) <= 10
    assert known.field("x_email") == Field("EMAIL", False)
