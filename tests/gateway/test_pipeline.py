"""The pipeline: whatever is asked, however it ends, has its steps in order and one end."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from divingbell import Divingbell
from divingbell.errors import NotRecorded, ToolFailed
from divingbell.gateway import pipeline
from divingbell.gateway.callers import SessionCaller
from divingbell.gateway.context import CallContext
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.pipeline import Pipeline, Request
from divingbell.host import profile
from divingbell.journal.events import (
    By,
    CallDecided,
    CallEnded,
    CallRequested,
    CallSent,
    Intent,
    JournalEvent,
)
from divingbell.journal.journal import Journal
from divingbell.parts import gateway_alone
from divingbell.principal import Principal
from divingbell.settings import config
from divingbell.settings.config import Settings
from tests.gateway.galley import ENTRY
from tests.waiting import PATIENCE

POLICY = {
    "rules": [
        {"tools": ["galley.add"], "action": "deny", "when": {"a": "13"}},
        {"tools": ["galley.echo"], "action": "ask", "when": {"text": "ask*"}},
        {"tools": ["galley.get_prompt"], "action": "deny", "when": {"name": "secret"}},
    ],
    "max_arguments": "20KB",
    "max_result": "20KB",
}
ANN = Principal("ann", "talk", "library")


class Person:
    """Somebody who says yes or no."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def elicit(self, params: Any) -> mcp_types.ElicitResult:
        return mcp_types.ElicitResult(action="accept", content={"decision": self.word})


class Keeper:
    """A durable subscriber, which refuses while it is told to."""

    def __init__(self) -> None:
        self.refuses = False

    async def intend(self, event: Intent) -> None:
        if self.refuses:
            raise NotRecorded("the disk is full")

    def note(self, event: JournalEvent) -> None: ...


class House:
    """A gateway with a real server, in a loop of its own, and all that its journal tells."""

    def __init__(self, gateway: Gateway, journal: Journal) -> None:
        self.gateway = gateway
        self.events: list[JournalEvent] = []
        self.keeper = Keeper()
        journal.watch(self.events.append)
        journal.keep(self.keeper)
        self.runs = 0

    def call(self, name: str, word: str = "yes", **arguments: Any) -> Awaitable[Any]:
        raw = json.dumps(arguments).encode()
        return self.gateway.answer(self.context(word), name, raw)

    def context(self, word: str = "yes", by: By = "code") -> CallContext:
        return CallContext(ANN, "s", "key", by, self.runs, Person(word))

    def other(self, method: str, *given: Any) -> Awaitable[Any]:
        context = self.context(by="client")
        caller = SessionCaller(self.gateway.policy, context, f"galley.{method}")
        if method == "lists":
            return self.gateway.requests.lists("galley", context, *given)
        if method == "complete":
            return self.gateway.requests.complete("galley", *given, None, context)
        return getattr(self.gateway.requests, method)("galley", *given, context, caller)


Ask = Callable[[House], Awaitable[Any]]
ARGUMENT = mcp_types.CompletionArgument(name="topic", value="p")
ASKED: dict[str, Ask] = {
    "ok": lambda house: house.call("galley.add", a=1, b=2),
    "denied": lambda house: house.call("galley.add", a=13, b=2),
    "unknown": lambda house: house.call("galley.none"),
    "no server": lambda house: house.call("none.none"),
    "wrong": lambda house: house.call("galley.add", a="x"),
    "no JSON": lambda house: house.gateway.answer(house.context(), "galley.add", b"{"),
    "too large": lambda house: house.call("galley.echo", text="x" * 30_000),
    "large result": lambda house: house.call("galley.big", megabytes=0.1),
    "fails": lambda house: house.call("galley.fail", message="no"),
    "yes": lambda house: house.call("galley.echo", text="ask"),
    "no": lambda house: house.call("galley.echo", "no", text="ask"),
    "question": lambda house: house.call("search_tools", query="add"),
    "wrong question": lambda house: house.call("search_tools", strange=1),
    "resource": lambda house: house.other("read_resource", "notes://today"),
    "no resource": lambda house: house.other("read_resource", "notes://none"),
    "prompt": lambda house: house.other("get_prompt", "plan", {"topic": "x"}),
    "denied prompt": lambda house: house.other("get_prompt", "secret", {}),
    "list": lambda house: house.other("lists", "prompts"),
    "completion": lambda house: house.other(
        "complete", mcp_types.PromptReference(name="plan"), ARGUMENT
    ),
    "unrecorded": lambda house: house.call("galley.add", a=3, b=4),
}
SENT = {"ok", "fails", "yes", "resource", "prompt", "list", "large result"}
"""Those that surely leave for the server."""
NEVER_SENT = {"denied", "unknown", "no server", "wrong", "no JSON", "too large", "no", "question",
              "wrong question", "denied prompt"}  # fmt: skip


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def house(portal: BlockingPortal) -> Iterator[House]:
    journal = Journal()
    found = config.load(None, {"servers": {"galley": ENTRY}, "policy": POLICY}, {})
    with portal.wrap_async_context_manager(gateway_alone(found, journal)) as gateway:
        portal.call(gateway.fleet.wait_until_ready, "galley")
        yield House(gateway, journal)


async def ask(house: House, kinds: list[tuple[str, int]]) -> None:
    """Ask for all of it at once; some are cancelled, after so many turns of the loop."""
    house.runs += 1
    house.events.clear()

    async def one(kind: str, turns: int) -> None:
        house.keeper.refuses = kind == "unrecorded"
        task = asyncio.ensure_future(ASKED[kind](house))
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns:
            task.cancel()
        with suppress(asyncio.CancelledError, ToolFailed, NotRecorded):
            await task
        house.keeper.refuses = False

    async with asyncio.timeout(PATIENCE * 3):
        await asyncio.gather(*(one(*kind) for kind in kinds))


def numbers(events: list[JournalEvent], kind: type) -> Counter[int]:
    return Counter(event.call for event in events if isinstance(event, kind))  # type: ignore[attr-defined]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from(sorted(ASKED)), st.integers(0, 12)), max_size=8))
def test_whatever_is_requested_has_one_end(
    portal: BlockingPortal, house: House, kinds: list[tuple[str, int]]
) -> None:
    portal.call(ask, house, kinds)
    events = list(house.events)
    requested, ended = numbers(events, CallRequested), numbers(events, CallEnded)
    assert requested == ended and set(requested.values()) <= {1}
    # One that is cancelled before it has begun was not requested.
    assert len(requested) >= sum(turns == 0 for _, turns in kinds)
    for number in requested:
        steps = [type(event) for event in events if getattr(event, "call", None) == number]
        order = [CallRequested, CallDecided, CallSent, CallEnded]
        assert steps == [step for step in order if step in steps], steps
        [end] = [each for each in events if isinstance(each, CallEnded) and each.call == number]
        assert (CallSent in steps) >= end.sent
        assert end.outcome not in ("denied", "refused") or not end.sent
        assert (end.code == "") == (end.outcome == "ok")


@pytest.mark.parametrize("kind", sorted(ASKED))
def test_each_kind_ends_as_it_should(portal: BlockingPortal, house: House, kind: str) -> None:
    portal.call(ask, house, [(kind, 0)])
    sent = [event for event in house.events if isinstance(event, CallSent)]
    ends = [event for event in house.events if isinstance(event, CallEnded)]
    assert len(ends) == 1
    if kind in SENT:
        assert len(sent) == 1 and ends[0].sent
    if kind in NEVER_SENT:
        assert not sent and not ends[0].sent
    outcomes = {
        "ok": "ok", "yes": "ok", "resource": "ok", "prompt": "ok", "list": "ok", "question": "ok",
        "denied": "denied", "no": "denied", "denied prompt": "denied", "unknown": "refused",
        "no server": "refused", "wrong": "refused", "no JSON": "refused", "too large": "refused",
        "wrong question": "refused", "unrecorded": "refused", "fails": "failed",
        "large result": "failed",
    }  # fmt: skip
    if kind in outcomes:
        assert ends[0].outcome == outcomes[kind], ends[0]


def test_everything_counts_once_against_the_budget(portal: BlockingPortal, house: House) -> None:
    before = house.gateway.pipeline.meter.used("key")
    portal.call(ask, house, [(kind, 0) for kind in ASKED])
    assert house.gateway.pipeline.meter.used("key") == before + len(ASKED)


def test_the_steps_are_named_in_their_order_wherever_they_are_named(house: House) -> None:
    steps = [step.__name__ for step in house.gateway.pipeline._to_server]  # type: ignore[attr-defined]
    named = " → ".join(steps)
    words = " ".join((pipeline.__doc__ or "").split())
    assert named in words
    page = (Path(__file__).parents[2] / "docs/architecture.md").read_text("utf-8")
    drawn = page.split("## The way of a tool")[1].split("```")[1]
    order = [step for step in re.findall(r"[a-z_]+", drawn) if step in steps]
    assert order == steps


@asynccontextmanager
async def gateway_lazily(found: Settings) -> AsyncIterator[Gateway]:
    """A gateway whose servers are started when one of their tools is called."""
    async with Divingbell.of(found) as bell:
        yield bell.gateway


class Masking(Pipeline):
    """A pipeline with one step more, which changes an argument between decide and check."""

    times = 0

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        at = self._to_server.index(self.check)
        self._to_server = (*self._to_server[:at], self.mask, *self._to_server[at:])

    async def mask(self, request: Request) -> None:
        Masking.times += 1
        if "text" in request.arguments:
            request.arguments = {**request.arguments, "text": "masked"}


async def test_a_step_that_changes_a_call_is_not_undone_when_the_list_of_tools_was_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiles").symlink_to(profile.home() / "profiles")
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))
    found = config.load(
        None, {"servers": {"galley": ENTRY}, "policy": {"pin": False}, "preload": []}, {}
    )

    async def echo(gateway: Gateway, **arguments: Any) -> str:
        raw = json.dumps(arguments).encode()
        answer = await gateway.answer(CallContext(ANN, "s", "key"), "galley.echo", raw)
        return str(json.loads(answer.body)["structured"])

    monkeypatch.setattr("divingbell.gateway.gateway.Pipeline", Masking)
    async with gateway_alone(found) as gateway:
        await gateway.fleet.wait_until_ready("galley")
        assert await echo(gateway, text="ada") == "masked"
    # The list that was kept asks for another name; the server is not connected to before the call.
    for kept in (tmp_path / "tool-lists").rglob("*.json"):
        kept.write_text(kept.read_text().replace('"text"', '"words"'))
    async with asyncio.timeout(PATIENCE * 3), gateway_lazily(found) as gateway:
        before = Masking.times
        assert await echo(gateway, text="ada") == "masked"
        assert Masking.times == before + 2, "the list was not looked at again"
