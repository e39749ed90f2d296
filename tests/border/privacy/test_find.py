"""Finds that overlap become one."""

from divingbell.border.privacy.find import Find, merged


def test_finds_are_sorted_and_disjoint_ones_stay() -> None:
    apart = [Find(0, 3, "EMAIL"), Find(3, 5, "PHONE")]
    assert merged(reversed(apart)) == apart


def test_what_overlaps_is_covered_as_one_of_the_longest_kind() -> None:
    finds = [Find(0, 10, "PHONE"), Find(8, 30, "CARD"), Find(29, 31, "EMAIL")]
    assert merged(finds) == [Find(0, 31, "CARD")]


def test_of_two_as_long_the_kind_that_says_more_counts() -> None:
    assert merged([Find(0, 9, "PHONE"), Find(0, 9, "SSN")]) == [Find(0, 9, "SSN")]
    assert merged([Find(0, 9, "PHONE"), Find(0, 9, "MY_OWN")]) == [Find(0, 9, "MY_OWN")]
