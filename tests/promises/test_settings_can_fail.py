"""Without what keeps them, promises about questions, settings and folders of others are broken."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.disguises import Disguises, View
from divingbell.host import owned_folder
from divingbell.settings import disclosure
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


async def test_a_question_that_leaves_the_end_of_a_command_out_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"G04"}) == set()
    shown = disclosure.shown
    monkeypatch.setattr(disclosure, "shown", lambda words: shown(words)[:1000])
    assert await broken(own_bell, {"G04"}) == {"G04"}


async def test_settings_that_any_user_could_have_written_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"G10"}) == set()
    monkeypatch.setattr(owned_folder, "check_file", lambda _: True)
    assert await broken(own_bell, {"G10"}) == {"G10"}


async def test_a_secret_within_what_acts_on_a_terminal_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"T82"}) == set()
    views = Disguises.views

    def last_alone(self: Disguises, text: str, size: int) -> list[View]:
        return views(self, text, size)[-1:]

    monkeypatch.setattr(Disguises, "views", last_alone)
    assert await broken(own_bell, {"T82"}) == {"T82"}
