"""Skills found by words."""

import asyncio
import random
import string
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from divingbell.gateway.search import section
from divingbell.skills import search, skill_file
from divingbell.skills.record import Record, Summary
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
async def test_the_skill_that_is_meant_comes_first(store: Store, query: str, best: str) -> None:
    [found, *_] = await SkillSearch(store).find(query)
    assert found.name == best


async def test_no_words_list_all_by_name_and_others_none(store: Store) -> None:
    found = SkillSearch(store)
    assert [each.name for each in await found.find()] == sorted(ABOUT)
    assert [each.name for each in await found.find("", 1)] == ["invoice-totals"]
    assert await found.find("quaternion") == await found.find("", 0) == []
    assert await found.find("", -5) == []


async def test_what_changes_is_found_and_nothing_else_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SkillSearch(store)
    await found.find()
    made_sections: list[str] = []

    class Counted(section.Section):
        def __init__(self, server: str, entries: object) -> None:
            made_sections.append(server)
            super().__init__(server, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "Section", Counted)
    store.save(skill_file.make("send-mail", "Sends a letter."), RECORD)
    store.remove("plot-weather")
    assert [each.name for each in await found.find("letter")] == ["send-mail"]
    assert await found.find("temperature") == []
    store.save(skill_file.make("send-mail", "Sends a parcel."), RECORD)
    assert await found.find("letter") == []
    assert [each.version for each in await found.find("parcel")] == [2]
    assert made_sections == ["send-mail", "send-mail"]


async def test_a_skill_that_is_to_be_tried_again_is_not_offered(store: Store) -> None:
    found = SkillSearch(store)
    await found.find()
    store.mark("top-customers", 1, "changed", "shop.orders has changed")
    assert await found.find("customers bought") == []
    [summary] = await found.find("customers bought", all_=True)
    assert summary.record.reason == "shop.orders has changed"
    store.save(made("untried"), Record("imported", state="untried"))
    assert [each.name for each in await found.find("untried")] == ["untried"]


async def test_users_are_apart_and_no_more_are_kept_than_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(search, "MOST_USERS", 2)
    searches = Searches(Stores(tmp_path))
    assert await searches.of("anna").find("customers")
    assert not await searches.of("bob").find("customers")
    kept = searches.of("anna")
    searches.of("carol")
    assert searches.of("anna") is kept
    assert len(searches._kept) == 2


# What one user's skills cost others

MANY = 200


def stuffed(count: int) -> list[str]:
    """Descriptions of as many different words as there is room for."""
    chance = random.Random(1)
    words = ("".join(chance.choices(string.ascii_lowercase, k=3)) for _ in range(255 * count))
    return [" ".join(next(words) for _ in range(255)) for _ in range(count)]


@pytest.fixture
def full(tmp_path: Path) -> Callable[[str], Store]:
    def fill(user: str) -> Store:
        store = Stores(tmp_path).of(user)
        said = enumerate(stuffed(MANY))
        store.save_all([(skill_file.make(f"k{number}", text), RECORD) for number, text in said])
        return store

    return fill


class Watched:
    """What is done in the few threads that all sessions share."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.pieces = 0
        self._guard = threading.Lock()
        before = search.weight.in_thread

        async def in_thread(work: Callable[[], object]) -> object:
            return await before(lambda: self._counted(work))

        monkeypatch.setattr(search.weight, "in_thread", in_thread)

    def _counted(self, work: Callable[[], object]) -> object:
        with self._guard:
            self.now += 1
            self.pieces += 1
            self.most = max(self.most, self.now)
        try:
            return work()
        finally:
            with self._guard:
                self.now -= 1


async def test_an_index_is_made_once_in_small_pieces_and_no_thread_waits(
    full: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, watched = SkillSearch(full("eve")), Watched(monkeypatch)
    sizes: list[int] = []
    before = SkillSearch._take
    monkeypatch.setattr(
        SkillSearch,
        "_take",
        lambda self, piece, most: sizes.append(len(piece)) or before(self, piece, most),
    )
    answers = await asyncio.gather(*(found.find("k7") for _ in range(5)))
    assert all(answer[0].name == "k7" for answer in answers)
    assert sizes == [search.PIECE] * (MANY // search.PIECE)
    assert watched.pieces == len(sizes) + 5  # the index once, and each search
    assert watched.most == 1


async def test_who_is_cancelled_leaves_what_was_made_to_the_next(
    full: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SkillSearch(full("eve"))
    before, made_sections = SkillSearch._take, list[str]()

    async def take(self: SkillSearch, piece: list[Summary], most: int) -> None:
        await before(self, piece, most)
        if len(self) == 2 * search.PIECE:
            raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(SkillSearch, "_take", take)
        with pytest.raises(asyncio.CancelledError):
            await found.find()

    class Counted(section.Section):
        def __init__(self, server: str, entries: object) -> None:
            made_sections.append(server)
            super().__init__(server, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "Section", Counted)
    assert len(await found.find("", 100)) == 100
    assert len(made_sections) == MANY - 2 * search.PIECE


async def test_one_skill_and_one_user_and_all_of_them_have_so_many_terms(
    full: Callable[[str], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("eve", "mallory", "trudy"):
        full(user)
    found = Searches(Stores(tmp_path))
    eve = found.of("eve")
    await eve.find()
    terms = [len(each.postings) for each in eve._index._sections.values()]
    assert max(terms) == search.MAX_TERMS
    assert eve.size == sum(terms) + MANY * search.OWN_SIZE
    monkeypatch.setattr(search, "MOST_OF_USER", 30 * MANY)
    monkeypatch.setattr(search, "MOST_OF_ALL", 70 * MANY)
    for user in ("mallory", "trudy", "mallory"):
        assert await found.of(user).find("k7")
        assert found.of(user).size <= search.MOST_OF_USER
    assert [*found._kept] == ["trudy", "mallory"] and found.size <= search.MOST_OF_ALL
    assert (await eve.find("k7"))[0].name == "k7"  # as large as it was, until there is a change
    eve._store.save(skill_file.make("k7", "Another."), RECORD)
    await eve.find()
    assert eve.size <= search.MOST_OF_USER


async def test_few_long_indexes_are_made_at_once_and_short_ones_wait_for_none(
    full: Callable[[str], Store], tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_MADE", 1)
    full("eve")
    searches = Searches(Stores(tmp_path))
    async with searches._places:
        waiting = asyncio.create_task(searches.of("eve").find("k7"))
        assert await searches.of("anna").find("customers")
        assert not waiting.done()
    assert await waiting
