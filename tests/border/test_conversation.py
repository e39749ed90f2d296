"""Conversations of one user that meet in a session know what was learned in each other."""

from collections.abc import AsyncIterator

import pytest

from divingbell.border import conversation
from divingbell.border.privacy.choosing import KINDS_OF, make_scanner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.vault import opening
from divingbell.principal import Principal
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.vault import VaultSettings

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
