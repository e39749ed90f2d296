"""Conversations of one user that meet in a session know what was learned in each other."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from divingbell.border import conversation, privacy_border
from divingbell.border.privacy import learner
from divingbell.border.privacy.choosing import KINDS_OF, make_scanner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.vault import opening, tokens
from divingbell.border.vault.memory import MemoryStore
from divingbell.border.vault.seal import Seal
from divingbell.border.vault.vault import Vaults
from divingbell.errors import UnknownToken
from divingbell.principal import Principal
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.vault import VaultSettings

KEEP = 3600.0
FIRST, SECOND = Principal("ann", "first"), Principal("ann", "second")
FILE = "for Sayrefitz, of Rue de Lappe 17"


@pytest.fixture
async def border() -> AsyncIterator[PrivacyBorder]:
    vaults = await opening.opened_in_memory(VaultSettings())
    kinds, rules = KINDS_OF["personal"], PrivacyRules()
    scanner = make_scanner("personal", rules)
    yield PrivacyBorder(vaults, scanner, kinds, Fields({}, kinds), rules)
    await vaults.close()


async def learn(border: PrivacyBorder, who: Principal, name: str = "Sayrefitz") -> None:
    row = {"last_name": name, "street": "Rue de Lappe 17"}
    await border.outward({"structured": row}, who, "sandbox", "crm.find")


async def test_who_reaches_a_session_reads_no_name_that_its_conversation_has_learned(
    border: PrivacyBorder,
) -> None:
    await learn(border, FIRST)
    assert await border.outward(FILE, SECOND) == FILE, "nothing that it reaches is of the first"
    border.join(SECOND, FIRST)
    shown = await border.outward(FILE, SECOND)
    assert "Sayrefitz" not in shown and "Lappe" not in shown
    assert (await border.reveal(shown, SECOND))[0] == FILE
    # What is learned later, in pieces, escaped, and the other way round.
    await learn(border, FIRST, "Müllerin")
    assert "llerin" not in await border.outward("to=M%C3%BCllerin", SECOND)
    pieces = border._of(SECOND).pieces()
    assert "Say" not in "".join(map(pieces.feed, "from Sayrefitz on")) + pieces.end()
    await learn(border, SECOND, "Okoyewich")
    assert "Okoyewich" not in await border.outward("by Okoyewich", FIRST)


async def test_another_user_knows_nothing_of_it(border: PrivacyBorder) -> None:
    await learn(border, FIRST)
    assert await border.outward(FILE, Principal("bert", "first")) == FILE


async def test_what_was_learned_in_a_conversation_that_went_stays_hidden(
    border: PrivacyBorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "MOST_JOINED", 2)
    for number in range(4):
        other = Principal("ann", f"other {number}")
        await learn(border, other, f"Given{number}")
        border.join(other, FIRST)
    assert len(border._of(FIRST).screen.learned_elsewhere) == 2
    shown = await border.outward("Given0 Given1 Given2 Given3", FIRST)
    assert "Given" not in shown


async def test_code_cannot_fill_the_room_of_results_with_what_it_gives_a_tool(
    border: PrivacyBorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "MOST_OF_SERVER", 2)
    junk = {"rows": [{"last_name": f"Junkname{number}"} for number in range(5)]}
    await border.learn(junk, FIRST, "crm.save")
    await learn(border, FIRST)
    shown = await border.outward(FILE, FIRST)
    assert "Sayrefitz" not in shown and "Lappe" not in shown


class Clock:
    """Seconds that pass when the test says so."""

    now = 1e6

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def timed() -> AsyncIterator[tuple[PrivacyBorder, Vaults, Clock]]:
    clock = Clock()
    vaults = Vaults(MemoryStore(KEEP, clock), Seal(bytes(32)), KEEP, clock)
    await vaults.start()
    kinds, rules = KINDS_OF["personal"], PrivacyRules()
    scanner = make_scanner("personal", rules)
    yield PrivacyBorder(vaults, scanner, kinds, Fields({}, kinds), rules), vaults, clock
    await vaults.close()


async def test_what_was_learned_is_gone_a_set_time_after_the_conversation(
    timed: tuple[PrivacyBorder, Vaults, Clock],
) -> None:
    border, vaults, clock = timed
    release = border.hold(SECOND)
    await learn(border, FIRST)
    border.join(SECOND, FIRST)
    shown = await border.outward(FILE, SECOND)
    mine = border.text("to me@x.org", FIRST).partition("to ")[2]
    assert (await border.reveal(shown, SECOND))[0] == FILE
    clock.now += KEEP / 2
    await vaults.round()
    assert (await border.reveal(mine, SECOND))[0] == "me@x.org", "the first is used by this"
    clock.now += KEEP + 1
    await vaults.round()
    known = [name for user in border._conversations.values() for name in user]
    assert known == ["second"] and list(border._principals.values()) == [SECOND]
    assert border._of(SECOND).screen.learned_elsewhere == ()
    with pytest.raises(UnknownToken):
        await border.inward(mine, SECOND, "mail")
    # What the second has a token for, it knows as long as it goes on.
    assert (await border.reveal(shown, SECOND))[0] == FILE
    release()
    clock.now += KEEP + 1
    await vaults.round()
    assert not border._conversations and not border._principals and not vaults._vaults


async def test_many_conversations_of_many_users_leave_nothing(
    timed: tuple[PrivacyBorder, Vaults, Clock],
) -> None:
    border, vaults, clock = timed
    for number in range(300):
        border.text(f"for {number}@x.org", Principal(f"user {number}", "one"))
    clock.now += KEEP + 1
    await vaults.round()
    assert not border._conversations and not vaults._vaults and not vaults._waiting


async def test_where_there_are_too_many_those_that_go_on_stay(
    border: PrivacyBorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy_border, "MOST_CONVERSATIONS", 3)
    border.hold(FIRST)
    await learn(border, FIRST)
    for number in range(8):
        border.text("for me@x.org", Principal("ann", f"other {number}"))
    assert len(border._conversations["ann"]) == 3
    assert "Sayrefitz" not in border.text(FILE, FIRST)


async def test_a_guess_at_all_that_is_reached_hits_less_than_once_in_ten_thousand(
    border: PrivacyBorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each was as full as it could be with as few digits as it could have, before they met.
    full = Counter(tokens.digits_for(count) for count in range(2_000))
    worst = min(full)
    for number in range(conversation.MOST_JOINED + 10):
        other = Principal("ann", f"other {number}")
        vault = border._of(other).vault
        for value in range(full[worst] + full[worst + 1]):
            vault.token_of(f"{value}@x{number}.org", "EMAIL")
        border.join(FIRST, other)
    reached = border._of(FIRST)._reached()
    assert len(reached) == tokens.MOST_REACHED
    border._of(FIRST).vault.token_of("mine@x.org", "EMAIL")
    known = {each.token for one in reached for each in one.vault.entries()}
    by_digits = Counter(len(token) - len("[EMAIL_]") for token in known)
    for digits, count in by_digits.items():
        assert count / (9 * 10 ** (digits - 1)) < 1 / tokens.CHANCE, digits


async def test_what_is_sealed_stays_so_when_its_token_is_withdrawn(border: PrivacyBorder) -> None:
    conversation = border._of(FIRST)
    [token] = conversation.seal({"Sayrefitz": "NAME"}, "crm.find").values()
    conversation.vault.withdraw(token)
    [shown] = conversation.resealed_all(["for Sayrefitz"], "crm.find")
    entry = conversation.entry_of(shown.removeprefix("for "))
    assert entry is not None and entry.token != token and entry.sealed
    assert await border.values_in(f"x = '{shown}'", FIRST) == {}
