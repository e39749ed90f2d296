"""Without what keeps them, promises about skills are broken."""

import re
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.gateway.policy.labels import Labels
from divingbell.skills import names, store
from divingbell.skills.questions import SkillQuestions
from divingbell.skills.store import Store, Stores
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


async def test_a_name_that_is_not_on_the_list_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"S01"}) == set()
    monkeypatch.setattr(names, "check", lambda name: re.sub(r"[^a-z]", "x", name)[:9] or "x")
    assert await broken(own_bell, {"S01"}) == {"S01"}


async def test_a_store_that_follows_links_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "_refuse_links", lambda _: None)
    assert await broken(own_bell, {"S01"}) == {"S01"}


async def test_one_store_for_all_users_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"S03"}) == set()
    monkeypatch.setattr(Stores, "of", lambda self, user: Store(self.root / "all", user))
    assert await broken(own_bell, {"S03"}) == {"S03"}


async def test_skills_without_their_labels_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"T69"}) == set()
    with monkeypatch.context() as patched:
        patched.setattr(SkillQuestions, "_label", lambda *_: None)
        assert await broken(own_bell, {"T69"}) == {"T69"}
    with monkeypatch.context() as patched:
        patched.setattr(Store, "labels", lambda *_: ())
        assert await broken(own_bell, {"T69"}) == {"T69"}
    with monkeypatch.context() as patched:
        patched.setattr(store, "_labels", lambda *_: ())
        assert await broken(own_bell, {"T69"}) == {"T69"}
    monkeypatch.setattr(Labels, "sources", lambda *_: ())
    assert await broken(own_bell, {"T69"}) == {"T69"}
