"""Skills found by words."""

from pathlib import Path

import pytest

from divingbell.gateway.search import section
from divingbell.skills import search, skill_file
from divingbell.skills.record import Record
from divingbell.skills.search import Searches, SkillSearch
from divingbell.skills.store import Store, Stores
from tests.skills.samples import RECORD, made

ABOUT = {
    "top-customers": "Finds the customers who have bought most in a period.",
    "invoice-totals": "Adds up invoices by month. Use it for reports of revenue.",
    "plot-weather": "Draws temperatures of a city as a chart.",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Stores(tmp_path).of("anna")
    store.save_all([(skill_file.make(name, said), RECORD) for name, said in ABOUT.items()])
    return store


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("who bought the most?", "top-customers"),
        ("monthly revenue", "invoice-totals"),
        ("chart of the temperature", "plot-weather"),
        ("plot_weather", "plot-weather"),
    ],
)
def test_the_skill_that_is_meant_comes_first(store: Store, query: str, best: str) -> None:
    assert SkillSearch(store).find(query)[0].name == best


def test_no_words_list_all_by_name_and_others_none(store: Store) -> None:
    found = SkillSearch(store)
    assert [each.name for each in found.find()] == sorted(ABOUT)
    assert found.find("", 1)[0].name == "invoice-totals"
    assert found.find("quaternion") == found.find("", 0) == found.find("", -5) == []


def test_what_changes_is_found_and_nothing_else_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SkillSearch(store)
    found.find()
    made_sections: list[str] = []

    class Counted(section.Section):
        def __init__(self, server: str, entries: object) -> None:
            made_sections.append(server)
            super().__init__(server, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "Section", Counted)
    store.save(skill_file.make("send-mail", "Sends a letter."), RECORD)
    store.remove("plot-weather")
    assert [each.name for each in found.find("letter")] == ["send-mail"]
    assert found.find("temperature") == []
    store.save(skill_file.make("send-mail", "Sends a parcel."), RECORD)
    assert found.find("letter") == []
    assert [each.version for each in found.find("parcel")] == [2]
    assert made_sections == ["send-mail", "send-mail"]


def test_a_skill_that_is_to_be_tried_again_is_not_offered(store: Store) -> None:
    found = SkillSearch(store)
    found.find()
    store.mark("top-customers", 1, "changed", "shop.orders has changed")
    assert found.find("customers bought") == []
    [summary] = found.find("customers bought", wanted=lambda _: True)
    assert summary.record.reason == "shop.orders has changed"
    store.save(made("untried"), Record("imported", state="untried"))
    assert [each.name for each in found.find("untried")] == ["untried"]


def test_users_are_apart_and_no_more_are_kept_than_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(search, "MOST_USERS", 2)
    searches = Searches(Stores(tmp_path))
    assert searches.of("anna").find("customers") and not searches.of("bob").find("customers")
    kept = searches.of("anna")
    searches.of("carol")
    assert searches.of("anna") is kept
    assert len(searches._kept) == 2
