"""The books of all sessions: whose results a model reads, and what is then added up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell.journal import recorder as module
from divingbell.journal.ledger import Definitions
from divingbell.journal.recorder import LedgerRecorder
from divingbell.journal.totals import Totals, report
from divingbell.models import Output, Result
from divingbell.principal import Principal
from divingbell.tool import Tool
from tests.waiting import PATIENCE, until

TOOLS = [
    Tool("a", name, "a", name, f"The tool {name}", {"type": "object", "properties": {}})
    for name in ("one", "two")
]
RESULT = Result("ok", outputs=(Output("text/plain", "42"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.db"


@pytest.fixture
async def books(path: Path) -> AsyncIterator[LedgerRecorder]:
    made = LedgerRecorder(Totals(path), lambda: TOOLS)
    yield made
    await made.close()


async def closed(books: LedgerRecorder) -> None:
    async with asyncio.timeout(PATIENCE):
        await books.close()


async def test_what_no_model_reads_is_counted_and_not_added_to_the_totals(
    books: LedgerRecorder, path: Path
) -> None:
    books.of("exec").note_call("a.one", "{}", "a long result " * 100)
    ledger = await books.balance("exec", Principal(), "one()", RESULT)
    assert ledger.direct_definition_tokens == 0 and ledger.direct_call_tokens > 100
    await closed(books)
    assert report(path, 2).total.executions == 0


async def test_definitions_count_once_a_conversation_whatever_its_sessions(
    books: LedgerRecorder, path: Path
) -> None:
    books.serve_models("what the model reads of us", lambda _: True)
    made = []
    for session, first in (("one", True), ("one", False), ("two", False), ("other", True)):
        books.read_by_model(session, first=first)
        made.append(await books.balance(session, Principal("ann"), "1", RESULT))
    definitions = Definitions().count(TOOLS)
    assert [one.direct_definition_tokens for one in made] == [definitions, 0, 0, definitions]
    assert [one.overhead_tokens > 0 for one in made] == [True, False, False, True]
    await closed(books)
    total = report(path, 2).total
    assert total.executions == 4 and total.direct_definition_tokens == 2 * definitions


async def test_a_tool_that_the_model_reads_anyway_is_not_spared(books: LedgerRecorder) -> None:
    books.serve_models("words", lambda tool: tool.name != "one")
    books.read_by_model("one", first=True)
    ledger = await books.balance("one", Principal(), "1", RESULT)
    assert ledger.direct_definition_tokens == Definitions().count(TOOLS[1:])


async def test_a_session_that_has_ended_is_forgotten(books: LedgerRecorder, path: Path) -> None:
    books.serve_models("words", lambda _: True)
    books.read_by_model("one", first=True)
    books.forget("one")
    assert (await books.balance("one", Principal(), "1", RESULT)).direct_definition_tokens == 0
    await closed(books)
    assert report(path, 2).total.executions == 0


async def test_definitions_are_counted_beforehand_only_where_models_are_served(
    books: LedgerRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(module.tokens, "count", lambda text: counted.append(text) or 1)
    books.listed(TOOLS)
    await asyncio.sleep(0)
    assert counted == [] and not books._warming
    books.serve_models("words", lambda _: True)
    await until(lambda: len(counted) == 1 + len(TOOLS), "all are counted")
