"""What searches say of what they leave out."""

import pytest

from divingbell.gateway import discovery
from divingbell.gateway.discovery import Findings
from divingbell.gateway.search.index import MAX_QUERY
from divingbell.tool import Tool
from tests.gateway.galley import galley

WAY = "a larger limit (up to 100) or a server shows others, list_mcp_tools() in code names all"


@pytest.mark.parametrize(
    ("shown", "total", "is_list", "words"),
    [
        (10, 210, True, f"and 200 more: {WAY}"),
        (10, 2_133, False, f"the best 10 of 2,133 tools: {WAY}"),
        (3, 3, True, ""),
        (0, 0, False, ""),
    ],
)
def test_what_is_left_out_is_counted(shown: int, total: int, is_list: bool, words: str) -> None:
    assert Findings([{}] * shown, total, is_list).rest() == words


async def test_only_what_is_left_out_is_counted() -> None:
    async with galley() as (bell, _):
        search = bell.gateway.discovery.search
        await bell.gateway.fleet.wait_for_tools("galley")
        everything = len(bell.gateway.tools("galley"))
        listed = await search("", "name_only", 3, "galley", "")
        assert (len(listed.items), listed.total, listed.is_list) == (3, everything, True)
        whole = await search("", "name_only", 100, None, "")
        assert len(whole.items) == whole.total == everything
        for level in ("name_only", "full"):
            few = await search("add two numbers", level, 100, None, "")
            assert len(few.items) == few.total < everything and not few.is_list


async def test_details_that_are_too_long_together_count_as_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("divingbell.gateway.catalog.descriptions.MAX_DESCRIBED", 1)
    async with galley() as (bell, _):
        found = await bell.gateway.discovery.search("add two numbers", "full", 100, None, "")
        assert len(found.items) == 1 < found.total


async def test_tools_are_counted_once_until_a_list_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with galley() as (bell, _):
        gateway, looked = bell.gateway, list[str]()
        await gateway.fleet.wait_for_tools("galley")
        everything = len(gateway.tools())
        may_see = gateway.visible.may_see

        def watched(tool: Tool, user: str) -> bool:
            looked.append(tool.name)
            return may_see(tool, user)

        monkeypatch.setattr(gateway.visible, "may_see", watched)
        counts = [gateway.visible.count(None, "ann") for _ in range(3)]
        assert counts == [everything] * 3 and len(looked) == everything
        await gateway.remove("galley")
        assert gateway.visible.count(None, "ann") == 0


async def test_what_a_user_may_not_see_is_not_counted() -> None:
    policy = {"rules": [{"tools": ["galley.a*"], "action": "deny"}]}
    async with galley(policy) as (bell, _):
        found = await bell.gateway.discovery.search("", "name_only", 1, None, "ann")
        assert found.total == len(bell.gateway.tools(None, "ann"))


async def test_of_a_long_query_no_more_is_read_than_a_search_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []
    stems = discovery.stems
    monkeypatch.setattr(discovery, "stems", lambda text: lengths.append(len(text)) or stems(text))
    async with galley() as (_, session):
        await session.run("search_tools('ab ' * 100_000)")
    assert lengths and max(lengths) <= MAX_QUERY
