"""Texts without what hides a value: the tables behind it."""

import sys
import unicodedata

from divingbell.border.privacy import views


def test_the_digits_of_all_scripts_are_known() -> None:
    characters = map(chr, range(0x80, sys.maxunicode + 1))
    found = {ord(one): str(unicodedata.decimal(one)) for one in characters if one.isdecimal()}
    assert views._digits() == found
