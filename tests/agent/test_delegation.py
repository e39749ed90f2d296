"""Helpers of an agent: fewer tools, a part of the budget, and an end with the cell."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types
import pytest

from divingbell import Divingbell, ToolFailed
from divingbell.agent import delegation
from divingbell.agent.agent import Agent
from divingbell.agent.delegation import order_of
from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    Done,
    HelperEnded,
    HelperStarted,
)
from divingbell.agent.limits import AgentLimits
from divingbell.agent.model import ModelRequest, ModelUsage
from divingbell.agent.opening import open_agent
from divingbell.agent.purse import NotEnough, Purse
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.gateway.context import Asker
from tests.waiting import until

pytestmark = pytest.mark.anyio
WORKSHOP = Path(__file__).parents[1] / "servers" / "workshop.py"
SERVERS = {"workshop": {"command": sys.executable, "args": [str(WORKSHOP)]}}
POLICY = {
    "calls_per_cell": 50,
    "rules": [
        {"tools": "workshop.complain", "action": "ask"},
        {"tools": "workshop.echo", "users": "visitor-*", "action": "deny", "reason": "a visitor"},
    ],
    "flow": [{"from": "workshop.tell", "to": "workshop.fail", "action": "deny"}],
}


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=2, servers=SERVERS, policy=POLICY, privacy="personal") as made:
        yield made


Plan = Callable[[ModelRequest], Says]


def is_helper(request: ModelRequest) -> bool:
    return "You are a helper" in request.instructions


def both(parent: list[Says], helper: Callable[[ModelRequest, int], Says]) -> Iterator[Plan]:
    """The parent says its lines; helpers say what is made of their request and its turn."""
    said = iter(parent)

    def answer(request: ModelRequest) -> Says:
        if is_helper(request):
            return helper(request, len(request.entries) // 2)
        return next(said)

    while True:
        yield answer


def steps(*lines: Says) -> Callable[[ModelRequest, int], Says]:
    return lambda request, turn: lines[turn]


@contextlib.asynccontextmanager
async def agent_of(
    bell: Divingbell,
    code: str,
    helper: Callable[[ModelRequest, int], Says],
    *more: Says,
    asker: Asker | None = None,
    user: str | None = None,
) -> AsyncIterator[tuple[Agent, ScriptedModel]]:
    model = ScriptedModel(both([Says("", code), *more, Says("done")], helper))
    async with bell.session(user=user) as session:
        yield await open_agent(bell, session, model, mode="code", asker=asker), model


async def all_of(agent: Agent) -> list[AgentEvent]:
    return [event async for event in agent.ask("do it")]


def output(events: list[AgentEvent]) -> str:
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    return ended.result.text + str(ended.result.error or "")


async def test_a_helper_returns_a_value_and_its_cost_is_shown(bell: Divingbell) -> None:
    code = "r = delegate('Double it.', context={'numbers': [1, 2]})\nprint(type(r), r)"
    plan = steps(Says("", "result = [2 * n for n in numbers]"), Says("Doubled."))
    before = len(bell.sessions())
    async with agent_of(bell, code, plan) as (agent, model):
        events = await all_of(agent)
        assert output(events) == "<class 'list'> [2, 4]\n"
        assert len(bell.sessions()) == before + 1, "the helper's session has ended"
    [started] = [event for event in events if isinstance(event, HelperStarted)]
    [ended] = [event for event in events if isinstance(event, HelperEnded)]
    assert (started.helper, started.task, started.tools) == (1, "Double it.", ())
    assert (ended.outcome, ended.turns) == ("answered", 2) and ended.total.input_tokens > 0
    done = events[-1]
    assert isinstance(done, Done)
    requests = [request for request in model.requests if not is_helper(request)]
    assert len(requests) == done.turns == 2
    own = done.total - ended.total
    assert own.input_tokens > 0, "the parent's total has the helper's"
    told = [event.event.text for event in events if isinstance(event, CellEvent)]
    assert any("helper 1 (Double it.): has ended: answered, " in text for text in told)


async def test_without_a_value_its_words_are_the_result(bell: Divingbell) -> None:
    async with agent_of(bell, "print(delegate('Say it.'))", steps(Says("It is 7."))) as (agent, _):
        assert output(await all_of(agent)) == "It is 7.\n"


async def test_it_knows_nothing_else_of_the_session(bell: Divingbell) -> None:
    code = "secret = 7\nprint(delegate('Look.', context={'a': 1}))"
    plan = steps(Says("", "result = ('secret' in globals(), a)"), Says("ok"))
    async with agent_of(bell, code, plan) as (agent, model):
        assert output(await all_of(agent)) == "[False, 1]\n"
    [helper, *_] = [request for request in model.requests if is_helper(request)]
    assert "do it" not in str(helper.entries)


TRY = """
import json
from divingbell_inside import tools
def attempt(name, arguments):
    try:
        return str(tools.call_now(name, arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
result = [attempt(name, arguments) for name, arguments in json.loads(given)]
"""


async def tried(
    bell: Divingbell,
    tools: list[str],
    *calls: tuple[str, dict[str, Any]],
    user: str | None = None,
) -> Any:
    """What a helper with these tools gets for calls that it makes by hand."""
    context = {"given": json.dumps(calls)}
    code = f"import json\nprint(json.dumps(delegate('Try.', {context!r}, {tools!r})))"
    async with agent_of(bell, code, steps(Says("", TRY), Says("ok")), user=user) as (agent, _):
        return json.loads(output(await all_of(agent)))


async def test_a_rule_for_some_users_counts_for_their_helpers_too(bell: Divingbell) -> None:
    echo = ("workshop.echo", {"text": "hello"})
    allowed = ["workshop.echo", "workshop.count"]
    assert await tried(bell, allowed, echo, user="ada") == ["hello"]
    [refused, counted] = await tried(
        bell, allowed, echo, ("workshop.count", {"to": 2}), user="visitor-1"
    )
    assert refused.startswith("ToolDenied: ") and "a visitor" in refused and counted == "2"


async def test_it_has_fewer_tools_at_the_door(bell: Divingbell) -> None:
    echo: Any = ("workshop.echo", {"text": "hello"})
    count: Any = ("workshop.count", {"to": 1})
    others = [("mcp__workshop__count", {"to": 1}), ("servers.workshop.count", {"to": 1})]
    details = ("get_mcp_tool_details", {"name": "workshop.count"})
    saving = ("save_skill", {"name": "f", "code": "x = 1", "description": "d"})
    reading = ("read_resource", {"server": "workshop", "uri": "x://y"})
    calls: list[Any] = [echo, count, *others, details, saving, reading, ("delegate", {"task": "x"})]
    found = await tried(bell, ["workshop.echo"], *calls)
    assert found[0] == "hello"
    assert found[1].startswith("ToolDenied: workshop.count is not among the tools")
    assert all(text.startswith(("ToolDenied", "ToolError")) for text in found[2:]), found
    assert "nobody to give work to" in found[-1], "depth 1"
    nothing = await tried(bell, [], echo)
    assert nothing[0].startswith("ToolDenied")
    less = await tried(bell, ["workshop.*", "!workshop.count"], echo, count)
    assert less[0] == "hello" and less[1].startswith("ToolDenied")


async def test_it_finds_only_what_it_may_call(bell: Divingbell) -> None:
    search: Any = ("search_tools", {"query": "", "limit": 100})
    names: Any = ("list_mcp_tools", {})
    found = await tried(bell, ["workshop.echo", "workshop.t*"], search, names)
    assert "workshop.echo" in found[0] and "workshop.count" not in found[0]
    assert found[1] == "['workshop.echo', 'workshop.tell']"


async def test_its_calls_count_as_those_of_the_cell_that_has_asked(bell: Divingbell) -> None:
    code = "print(delegate('Call.', tools=['workshop.echo']))"
    calling = (
        "from servers.workshop import echo\nmade = 0\ntry:\n    for n in range(100):\n"
        "        echo('x')\n        made += 1\nexcept ToolError as error:\n"
        "    result = [made, str(error)]"
    )
    async with agent_of(bell, code, steps(Says("", calling), Says("ok"))) as (agent, _):
        shown = output(await all_of(agent))
    assert "all 50 calls are used (calls_per_cell" in shown
    assert int(shown.strip("[").partition(",")[0]) < 50


async def test_it_works_with_gather(bell: Divingbell) -> None:
    code = (
        "import asyncio\n"
        "found = await asyncio.gather(*(delegate(f'Square {n}.', {'n': n}) for n in range(6)))\n"
        "print(found)"
    )
    plan = steps(Says("", "result = n * n"), Says("ok"))
    async with agent_of(bell, code, plan) as (agent, _):
        events = await all_of(agent)
    assert output(events) == "[0, 1, 4, 9, 16, 25]\n"
    assert len([event for event in events if isinstance(event, HelperEnded)]) == 6


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (steps(Says("", "failure = 'there are no orders'"), Says("ok")), "there are no orders"),
        (steps(Says("", "result = {1, 2}"), Says("ok")), "no plain data but"),
        (steps(Says("", "result = float('nan')"), Says("ok")), "no plain data but float"),
        (lambda request, turn: Says("", "1"), "it has made 20 requests"),
        (lambda request, turn: Says("", "1 / 0"), "failed in a row"),
        (steps(Says("")), "said nothing"),
    ],
)
async def test_it_raises_where_there_is_no_result(
    bell: Divingbell, plan: Callable[[ModelRequest, int], Says], words: str
) -> None:
    async with agent_of(bell, "delegate('Try.')", plan) as (agent, _):
        shown = output(await all_of(agent))
    assert "ToolError: delegate: " in shown and words in shown


async def test_it_ends_with_the_cell(bell: Divingbell) -> None:
    """Also where nobody waits for it: the cell is left, or interrupted."""
    left = "import threading\nthreading.Thread(target=delegate, args=['Wait.']).start()\n" + (
        "import time\ntime.sleep(1)"
    )
    plan = steps(Says("", "import time\ntime.sleep(600)"))
    async with agent_of(bell, left, plan) as (agent, _):
        before = len(bell.sessions())
        events = await all_of(agent)
        await until(lambda: len(bell.sessions()) == before, "the helper has ended")
        assert [event for event in events if isinstance(event, HelperStarted)]
    async with agent_of(bell, "delegate('Wait.')", plan) as (agent, _):
        before = len(bell.sessions())
        asking = agent.ask("go")
        async for event in asking:
            if isinstance(event, CellEvent) and "runs code" in event.event.text:
                break
        await asking.aclose()
        await until(lambda: len(bell.sessions()) == before, "the helper has ended")


async def test_the_model_reads_no_value_that_code_has_put_into_a_task(bell: Divingbell) -> None:
    code = (
        "mail = 'ada' + '@' + 'example.org'\n"
        "print(delegate(f'Who is {mail}?', {'m': mail}) == mail)"
    )
    plan = steps(Says("", "result = m"), Says("ok"))
    async with agent_of(bell, code, plan) as (agent, model):
        assert output(await all_of(agent)) == "True\n", "code has the values"
    assert "ada@example.org" not in str(model.requests[1:])
    [helper, *_] = [request for request in model.requests if is_helper(request)]
    assert "Who is [EMAIL" in helper.entries[0].text


async def test_what_a_helper_has_read_its_parent_has(bell: Divingbell) -> None:
    """A rule about flows holds across helpers, both ways."""
    code = (
        "from servers.workshop import fail\ndelegate('Read.', tools=['workshop.tell'])\n"
        "fail(text='x')"
    )
    plan = steps(Says("", "from servers.workshop import tell\ntell(text='x')"), Says("ok"))
    async with agent_of(bell, code, plan) as (agent, _):
        assert "ToolDenied: workshop.fail is denied by policy" in output(await all_of(agent))
    code = (
        "from servers.workshop import tell\ntell(text='x')\n"
        "print(delegate('Write.', tools=['workshop.fail']))"
    )
    writing = (
        "from servers.workshop import fail\ntry:\n    fail(text='x')\n"
        "except ToolError as error:\n    result = str(error)"
    )
    async with agent_of(bell, code, steps(Says("", writing), Says("ok"))) as (agent, _):
        assert "denied by policy" in output(await all_of(agent))


class Person:
    """Somebody who says yes, one question at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.at_once = 0

    async def elicit(self, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        self.asked.append(params.message)
        self.at_once += 1
        assert self.at_once == 1
        await asyncio.sleep(0.3)  # people take their time: a second question would come meanwhile
        self.at_once -= 1
        return mcp_types.ElicitResult(action="accept", content={"decision": "yes"})


async def test_the_person_is_asked_and_told_that_it_is_a_helper(bell: Divingbell) -> None:
    code = (
        "import asyncio\nprint(await asyncio.gather(*(delegate('Complain.', "
        "tools=['workshop.complain']) for n in range(2))))"
    )
    complaining = "from servers.workshop import complain\nresult = complain(text='loud')"
    person = Person()
    async with agent_of(bell, code, steps(Says("", complaining), Says("ok")), asker=person) as (
        agent,
        _,
    ):
        assert output(await all_of(agent)) == "['said', 'said']\n"
    assert sorted(text.partition(":")[0] for text in person.asked) == ["Helper 1", "Helper 2"]


async def test_a_budget_is_taken_from_that_of_the_parent_first() -> None:
    settings: dict[str, Any] = {"agent": {"tokens": 50_000}}
    async with Divingbell(pool=1, preload=(), **settings) as bell:
        code = (
            "import asyncio\n"
            "print(await asyncio.gather(*(delegate('Work.', budget=30_000) for n in range(2)), "
            "return_exceptions=True))"
        )
        async with agent_of(bell, code, steps(Says("", "result = 1"), Says("ok"))) as (agent, _):
            shown = output(await all_of(agent))
    assert shown.startswith("[1, ToolError(") and "tokens are left for this answer" in shown


async def test_helpers_of_helpers_only_where_the_settings_say_so() -> None:
    settings: dict[str, Any] = {"agent": {"delegate_depth": 2}}

    def plan(request: ModelRequest, turn: int) -> Says:
        is_first = "Outer." in request.entries[0].text
        if turn:
            return Says("ok")
        return Says("", "result = delegate('Inner.') + 1" if is_first else "result = 1")

    async with (
        Divingbell(pool=1, preload=(), **settings) as bell,
        agent_of(bell, "print(delegate('Outer.'))", plan) as (agent, model),
    ):
        events = await all_of(agent)
    assert output(events) == "2\n"
    outer = [event for event in events if isinstance(event, HelperEnded)][-1]
    helped = [request for request in model.requests if is_helper(request)]
    assert len(helped) == 4 and outer.turns == 2
    assert agent.total.input_tokens > outer.total.input_tokens


async def test_a_cell_has_helpers_to_an_end(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegation, "MOST", 2)
    code = "while True:\n    print(delegate('Again.'))"
    async with agent_of(bell, code, lambda request, turn: Says("ok")) as (agent, _):
        shown = output(await all_of(agent))
    assert shown.startswith("ok\nok\nTraceback") and "this cell has had 2 helpers" in shown


async def test_without_an_agent_there_is_nobody_to_delegate_to(bell: Divingbell) -> None:
    result = await bell.execute("delegate('x')")
    assert result.error is not None and "nobody to give work to" in result.error.message


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"task": " "},
        {"task": "x" * 30_000},
        {"task": "x", "context": [1]},
        {"task": "x", "context": {"result": 1}},
        {"task": "x", "tools": "shop.*"},
        {"task": "x", "tools": [""]},
        {"task": "x", "tools": ["a.b"] * 101},
        {"task": "x", "budget": 0},
        {"task": "x", "budget": True},
        {"task": "x", "budget": "much"},
    ],
)
def test_orders_that_can_not_be_used_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed) as raised:
        order_of(given)
    assert raised.value.code == "tool_arguments"


def test_parts_of_a_purse_are_never_more_than_is_in_it() -> None:
    purse = Purse(AgentLimits(tokens=1_000, money=1.0))
    purse.spend(ModelUsage(100, 100, cost=0.2))
    with purse.part(None) as first:
        assert first.tokens == 200 and first.money == pytest.approx(0.2)
        purse.spend_part(first, ModelUsage(50, 50, cost=0.1))
        with purse.part(600) as second, pytest.raises(NotEnough, match="0 tokens"):
            assert second.tokens == 600
            purse.part(1).__enter__()
        with pytest.raises(NotEnough, match="600 tokens"):
            purse.part(601).__enter__()
    with purse.part(700) as third:
        assert third.tokens == 700, "what was not used has come back"
    assert purse.answer.input_tokens == 150 and purse.answer.cost == pytest.approx(0.3)
