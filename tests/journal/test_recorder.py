"""The ledgers of all sessions: what is noted, for whom definitions count, what is added up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import mcp_types
import pytest

from divingbell.journal import recorder as module
from divingbell.journal.events import CallEnded, CellEnded, SessionEnded
from divingbell.journal.journal import Journal
from divingbell.journal.ledger import Definitions
from divingbell.journal.recorder import LedgerRecorder
from divingbell.journal.totals import Totals, report
from divingbell.models import Ledger, Output, Result
from divingbell.principal import Principal
from divingbell.tool import Tool
from tests.waiting import PATIENCE, until

TOOLS = [
    Tool("a", name, "a", name, f"The tool {name}", {"type": "object", "properties": {}})
    for name in ("one", "two")
]
RESULT = Result("ok", outputs=(Output("text/plain", "42"),))


@pytest.fixture
async def ledgers() -> AsyncIterator[LedgerRecorder]:
    made = LedgerRecorder(lambda: TOOLS, lambda: True)
    yield made
    await made.close()


def call(result: mcp_types.CallToolResult | None, by: str = "code", body: bytes = b"") -> CallEnded:
    return CallEnded(
        1, Principal(), "s", 1, by, "tool", "a.one", "ok", "", True, {}, b"{}", result, body, 0.1
    )  # type: ignore[arg-type]


async def tokens_of(ledgers: LedgerRecorder, session: str = "s") -> Ledger:
    found = await ledgers.ledger_of(session, "one()", RESULT)
    assert found is not None
    return found


async def test_calls_of_code_are_noted_by_their_text_or_by_their_value(
    ledgers: LedgerRecorder,
) -> None:
    long = "a long result " * 100
    text = mcp_types.CallToolResult(content=[mcp_types.TextContent(text=long)])
    value = mcp_types.CallToolResult(content=[], structured_content={"n": 1})
    ledgers.take(call(text))
    first = await tokens_of(ledgers)
    assert first.calls == 1 and first.direct_call_tokens > 200
    ledgers.take(call(value, body=long.encode()))
    second = await tokens_of(ledgers)
    assert abs(second.direct_call_tokens - first.direct_call_tokens) < 5


async def test_calls_without_a_result_and_those_of_clients_are_not(
    ledgers: LedgerRecorder,
) -> None:
    ledgers.take(call(None))
    ledgers.take(call(mcp_types.CallToolResult(content=[]), by="client"))
    assert (await tokens_of(ledgers)).calls == 0


async def test_what_no_model_reads_has_no_definitions(ledgers: LedgerRecorder) -> None:
    assert (await tokens_of(ledgers)).direct_definition_tokens == 0


async def test_without_servers_there_is_no_ledger() -> None:
    assert await LedgerRecorder(lambda: [], lambda: False).ledger_of("s", "1", RESULT) is None


async def test_definitions_count_once_a_conversation_whatever_its_sessions(
    ledgers: LedgerRecorder,
) -> None:
    ledgers.serve_models("what the model reads of us", lambda _: True)
    made = []
    for session, first in (("one", True), ("one", False), ("two", False), ("other", True)):
        if first:
            ledgers.open_conversation(session)
        made.append(await tokens_of(ledgers, session))
    definitions = Definitions().count(TOOLS)
    assert [one.direct_definition_tokens for one in made] == [definitions, 0, 0, definitions]
    assert [one.overhead_tokens > 0 for one in made] == [True, False, False, True]


async def test_a_tool_that_the_model_reads_anyway_is_not_spared(ledgers: LedgerRecorder) -> None:
    ledgers.serve_models("words", lambda tool: tool.name != "one")
    ledgers.open_conversation("one")
    ledger = await tokens_of(ledgers, "one")
    assert ledger.direct_definition_tokens == Definitions().count(TOOLS[1:])


async def test_a_session_that_has_ended_is_forgotten(ledgers: LedgerRecorder) -> None:
    ledgers.serve_models("words", lambda _: True)
    ledgers.open_conversation("one")
    ledgers.take(SessionEnded(Principal(), "id", "one", "closed"))
    assert (await tokens_of(ledgers, "one")).direct_definition_tokens == 0
    assert not ledgers._accountants, "the ledger of a session that has ended is not kept"


async def test_definitions_are_counted_beforehand_only_where_models_are_served(
    ledgers: LedgerRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(module.tokens, "count", lambda text: counted.append(text) or 1)
    ledgers.count_soon(TOOLS)
    await asyncio.sleep(0)
    assert counted == [] and not ledgers._warming
    ledgers.serve_models("words", lambda _: True)
    await until(lambda: len(counted) == 1 + len(TOOLS), "all are counted")


@pytest.mark.parametrize(("client", "executions"), [("stdio", 1), ("http", 1), ("library", 0)])
async def test_only_what_models_read_is_added_to_the_totals(
    tmp_path: Path, client: str, executions: int
) -> None:
    path = tmp_path / "data" / "ledger.db"
    journal, totals = Journal(), Totals(path)
    journal.watch(totals.take)
    principal = Principal("ann", client=client)
    journal.note(CellEnded(principal, "s", 1, "1", Result("ok", ledger=Ledger(code_tokens=3))))
    journal.note(CellEnded(principal, "s", 2, "1", None))
    async with asyncio.timeout(PATIENCE):
        await totals.close()
    assert report(path, 2).total.executions == executions
