"""Modes of the agent: what decides, and what the model is given then."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import ConfigError, Divingbell, Session
from divingbell.agent.agent import Agent
from divingbell.agent.code_tool import DEFINITION
from divingbell.agent.direct_tools import LONG, Offer, shape_of
from divingbell.agent.events import AgentEvent, CellEvent, Notice, ToolEnded, ToolStarted
from divingbell.agent.history import Answered, Call
from divingbell.agent.mode_choice import ModeChoice
from divingbell.agent.modes import Circumstances, decide, definition_tokens, signatures
from divingbell.agent.opening import open_agent
from divingbell.agent.prompt import instructions
from divingbell.agent.scripted import Line, Says, ScriptedModel
from divingbell.host import requirements
from divingbell.journal import tokens, totals
from divingbell.settings.agent import AgentMode
from divingbell.tool import Tool

pytestmark = pytest.mark.anyio
WORKSHOP = Path(__file__).parents[1] / "servers" / "workshop.py"
SERVERS = {"workshop": {"command": sys.executable, "args": [str(WORKSHOP)]}}


def find_orders(customer: str) -> list[dict[str, Any]]:
    """Find the orders of a customer."""
    return [{"id": n, "customer": customer, "note": "as usual " * 3} for n in range(1_000)]


def tool(name: str, words: int = 1) -> Tool:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    return Tool("shop", name, "shop", name, "word " * words, schema)


def offer_of(*tools: Tool) -> Offer:
    return Offer({f"shop__{each.name}": each for each in tools}, tools)


async def asked_of(offer: Offer, window: int | None, **found: Any) -> ModeChoice:
    return await decide("auto", Circumstances(offer, window, **found))


async def test_auto_goes_by_the_share_of_the_window_that_definitions_take() -> None:
    offer = offer_of(tool("a", 100), tool("b", 100))
    size = await definition_tokens(offer)
    assert (await asked_of(offer, size * 50)).mode == "direct"
    assert (await asked_of(offer, size * 50 - 50)).mode == "hybrid"
    assert (await asked_of(offer, size * 20)).mode == "hybrid"
    choice = await asked_of(offer, size * 20 - 20)
    assert choice.mode == "code"
    assert f"{size:,} tokens" in choice.why and "2 tools" in choice.why


async def test_auto_takes_code_for_data_and_where_nothing_can_be_called() -> None:
    offer = offer_of(tool("a"))
    assert (await asked_of(offer, 200_000)).mode == "direct"
    assert (await asked_of(offer, 200_000, has_data=True)).mode == "code"
    assert (await asked_of(offer, 200_000, calls_tools=False)).mode == "code"
    assert (await asked_of(offer_of(), 200_000)).mode == "code"
    assert "as is assumed" in (await asked_of(offer, None)).why


async def test_a_mode_that_the_model_can_not_do_is_refused() -> None:
    for mode in ("direct", "hybrid"):
        with pytest.raises(ConfigError, match="calls tools"):
            await decide(mode, Circumstances(offer_of(tool("a")), 1, calls_tools=False))
    assert (await decide("code", Circumstances(offer_of(), 1, calls_tools=False))).mode == "code"


async def test_a_mode_in_which_nothing_can_be_done_says_so() -> None:
    nothing = await decide("direct", Circumstances(offer_of(), 1))
    assert nothing.mode == "direct" and "no tools to call directly" in nothing.why
    assert (await decide("direct", Circumstances(offer_of(tool("a")), 1))).why == ""
    assert (await decide("hybrid", Circumstances(offer_of(), 1))).why == ""


async def test_signatures_stand_in_the_prompt_where_all_of_them_fit() -> None:
    few = await signatures(offer_of(tool("a"), tool("b")))
    assert few.splitlines()[0] == "# from servers.shop import …" and "a(" in few and "b(" in few
    many = offer_of(*(tool(f"tool_number_{n}") for n in range(200)))
    assert await signatures(many) == ""
    unknown = Offer({}, (tool("a"),), is_whole=False)
    assert await signatures(unknown) == "", "a server that has not answered has tools as well"
    assert few in instructions(None, [], ["shop"], few)


@pytest.mark.parametrize("mode", ["code", "hybrid", "direct"])
def test_the_prompt_with_our_tools_has_at_most_800_tokens(mode: Any) -> None:
    servers = [f"server_{n}" for n in range(20)]
    text = instructions(None, requirements.at_hand(()), servers, "", mode, delegates=True)
    ours = json.dumps([DEFINITION.name, DEFINITION.description, DEFINITION.schema])
    assert tokens.count(text + ours) <= 800
    again = instructions(None, requirements.at_hand(()), servers[::-1], "", mode, delegates=True)
    assert text == again, "byte-stable"


def test_a_model_that_calls_no_tools_is_told_to_write_fences() -> None:
    text = instructions(None, requirements.at_hand(()), [], calls_tools=False)
    assert "```python" in text and "execute_python" not in text
    assert tokens.count(text) <= 800


# With real tools


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    policy = {
        "rules": [
            {"tools": "workshop.environment", "action": "deny", "reason": "it is not for models"},
            {"tools": "workshop.complain", "action": "ask"},
        ]
    }
    async with Divingbell(pool=1, servers=SERVERS, policy=policy, privacy="personal") as made:
        made.tool(find_orders)
        yield made


@contextlib.asynccontextmanager
async def agent_of(
    bell: Divingbell, mode: AgentMode | None, *lines: Line, window: int = 200_000
) -> AsyncIterator[tuple[Agent, ScriptedModel, Session]]:
    model = ScriptedModel(lines, window=window)
    async with bell.session() as session:
        yield await open_agent(bell, session, model, mode=mode), model, session


def call(name: str, **arguments: Any) -> Call:
    return Call(f"id_{name}", name, json.dumps(arguments))


async def all_of(agent: Agent, text: str = "do it") -> list[AgentEvent]:
    return [event async for event in agent.ask(text)]


def answers(agent: Agent) -> list[str]:
    return [entry.text for entry in agent.history if isinstance(entry, Answered)]


async def test_each_mode_gives_the_model_its_tools(bell: Divingbell) -> None:
    names = {}
    for mode in ("code", "hybrid", "direct"):
        async with agent_of(bell, mode, Says("ok")) as (agent, model, _):
            await all_of(agent)
            names[mode] = {each.name for each in model.requests[0].tools}
    assert names["code"] == {"execute_python"}
    assert {"workshop__echo", "host__find_orders"} <= names["direct"]
    assert names["hybrid"] == names["direct"] - {"read_result"} | {"execute_python"}
    assert "workshop__environment" not in names["direct"], "what nobody may call is not offered"


async def test_a_tool_is_called_directly_and_its_progress_is_shown(bell: Divingbell) -> None:
    called = (call("workshop__echo", text="hello"), call("workshop__count", to=2))
    async with agent_of(bell, "direct", Says(calls=called), Says("ok")) as (agent, _, _session):
        events = await all_of(agent)
    assert answers(agent) == ["hello", "2"]
    started = [event.name for event in events if isinstance(event, ToolStarted)]
    assert started == ["workshop__echo", "workshop__count"]
    progress = [event.event.text for event in events if isinstance(event, CellEvent)]
    assert progress == ["step 1", "step 2"]


async def test_the_door_is_that_of_code(bell: Divingbell) -> None:
    """Rules, approvals, schemas: the answers are those that code gets."""
    called = (
        call("workshop__complain", text="x"),
        call("workshop__echo", words="x"),
        call("workshop__fail", text="x"),
        call("workshop__environment"),
    )
    async with agent_of(bell, "direct", Says(calls=called), Says("ok")) as (agent, _, _session):
        events = await all_of(agent)
    nobody, wrong, failed, missing = answers(agent)
    assert "approval" in nobody
    assert "text" in wrong and "echo(" in wrong
    assert failed == "Error executing tool fail", "in the words of the server"
    assert "there is no tool 'workshop__environment'" in missing
    assert [event.failed for event in events if isinstance(event, ToolEnded)] == [True] * 3


async def test_calls_count_against_the_budget_of_the_session(tmp_path: Path) -> None:
    policy = {"calls_per_session": 2}
    async with Divingbell(pool=0, servers=SERVERS, policy=policy) as bell:
        echo = call("workshop__echo", text="x")
        code = "from servers.workshop import echo\necho('from code')"
        lines = [Says("", code), Says(calls=(echo, echo)), Says("ok")]
        async with agent_of(bell, "hybrid", *lines) as (agent, _, _session):
            await all_of(agent)
    assert answers(agent)[1] == "x"
    assert "all 2 calls are used" in answers(agent)[2]


async def test_a_flow_rule_holds_between_code_and_direct_calls() -> None:
    flow = [{"from": "workshop.echo", "to": "workshop.count", "action": "deny"}]
    async with Divingbell(pool=0, servers=SERVERS, policy={"flow": flow}) as bell:
        code = "from servers.workshop import count\ncount(to=1)"
        lines = [Says(calls=(call("workshop__echo", text="x"),)), Says("", code), Says("ok")]
        async with agent_of(bell, "hybrid", *lines) as (agent, _, _session):
            await all_of(agent)
            assert "ToolDenied" in answers(agent)[1]
        lines = [
            Says("", "from servers.workshop import echo\necho('x')"),
            Says(calls=(call("workshop__count", to=1),)),
            Says("ok"),
        ]
        async with agent_of(bell, "hybrid", *lines) as (agent, _, _session):
            await all_of(agent)
            assert "denied by policy" in answers(agent)[1]
        assert not len(bell.gateway.labels), "nothing is kept of those that have ended"


async def test_a_long_result_goes_to_a_file_that_code_reads(bell: Divingbell) -> None:
    code = "import json\nlen(json.load(open('/workspace/results/host-find_orders-1.json')))"
    lines = [Says(calls=(call("host__find_orders", customer="Ada"),)), Says("", code), Says("ok")]
    async with agent_of(bell, "hybrid", *lines) as (agent, _, _session):
        await all_of(agent)
    start, read = answers(agent)
    assert tokens.count(start) < LONG
    assert "1,000 items, objects with id, customer, note" in start
    assert "/workspace/results/host-find_orders-1.json" in start
    assert "1000" in read


async def test_without_code_a_long_result_is_read_on(bell: Divingbell) -> None:
    path = "/workspace/results/host-find_orders-1.json"
    lines = [
        Says(calls=(call("host__find_orders", customer="Ada"),)),
        Says(
            calls=(
                call("read_result", path=path, start=1_000),
                call("read_result", path="/etc/passwd"),
                call("read_result", path=path, start="x"),
            )
        ),
        Says("ok"),
    ]
    async with agent_of(bell, "direct", *lines) as (agent, _, _session):
        await all_of(agent)
    start, piece, elsewhere, wrong = answers(agent)
    assert "read_result reads on" in start
    assert "as usual" in piece and "[characters 1,000 to 7,000 of" in piece
    assert "root:" not in elsewhere
    assert "needs a path" in wrong


async def test_the_model_reads_tokens_and_the_server_gets_values(bell: Divingbell) -> None:
    told: list[str] = []

    def again(request: Any) -> Says:
        token = request.entries[-1].text.split()[0]
        told.append(token)
        return Says(calls=(call("workshop__echo", text=f"{token} is {len(token)}"),))

    first = Says(calls=(call("workshop__echo", text="ada@example.org wrote"),))
    lines: list[Line] = [first, again, Says("ok")]
    async with agent_of(bell, "direct", *lines) as (agent, _, session):
        await all_of(agent)
        assert told[0].startswith("[EMAIL")
        assert await session.reveal(told[0]) == "ada@example.org"
    assert "ada@example.org" not in "".join(answers(agent))


async def test_an_interrupted_call_is_given_up(bell: Divingbell) -> None:
    async with agent_of(bell, "direct", Says(calls=(call("workshop__count", to=10**6),))) as (
        agent,
        _,
        _session,
    ):
        asking = agent.ask("go")
        async for event in asking:
            if isinstance(event, CellEvent):
                break
        await asking.aclose()
    assert "interrupted" in answers(agent)[0]


async def test_auto_says_once_why(bell: Divingbell) -> None:
    async with agent_of(bell, "auto", Says("a"), Says("b")) as (agent, _, _session):
        [notice] = [event for event in await all_of(agent) if isinstance(event, Notice)]
        assert notice.text.startswith("mode direct: the definitions of")
        assert not [event for event in await all_of(agent) if isinstance(event, Notice)]
    async with agent_of(bell, "auto", Says("a"), window=10_000) as (agent, _, _session):
        assert agent.mode is not None and agent.mode.mode == "code"
        assert "from servers.workshop import" in agent.instructions
    async with bell.session() as session:
        await session.files.put("sales.csv", "a,b\n1,2\n")
        agent = await open_agent(bell, session, ScriptedModel([]))
        assert agent.mode == ModeChoice("code", "there is data to compute with")


async def test_a_mode_that_was_chosen_stays_and_is_not_told_again(bell: Divingbell) -> None:
    chosen = ModeChoice("direct", "the tools are few", "half")
    async with bell.session() as session:
        await session.files.put("sales.csv", "a,b\n1,2\n")  # `auto` would take code for it
        agent = await open_agent(bell, session, ScriptedModel([Says("ok")]), mode=chosen)
        assert agent.mode == chosen
        assert not [event for event in await all_of(agent) if isinstance(event, Notice)]
        fences = ScriptedModel([], calls_tools=False)
        agent = await open_agent(bell, session, fences, mode=chosen)
        assert agent.mode is not None and agent.mode.mode == "code", "it can't call any"
        assert agent.tells_mode
    async with Divingbell(pool=0, preload=()) as bare, bare.session() as session:
        agent = await open_agent(bare, session, ScriptedModel([]), mode=chosen)
        assert agent.mode == ModeChoice("code", "there are no tools to call directly")


def test_the_shape_of_a_long_text() -> None:
    assert shape_of("a\nb") == ("text of 2 lines", "txt")
    assert shape_of('[{"a": 1}]') == ("a JSON list of 1 items, objects with a", "json")
    assert shape_of('{"rows": [{"a": 1}], "next": 2}') == (
        "a JSON object with rows (1 items, objects with a), next",
        "json",
    )
    assert shape_of("[" * 100_000)[1] == "txt"


async def test_an_experiment_decides_for_its_users_and_its_answers_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    experiment = {"arms": {"code": 0, "direct": 100}, "users": {"code": ["user-7"]}}
    settings: dict[str, Any] = {"experiment": experiment, "agent": {"mode": "hybrid"}}
    async with Divingbell(pool=0, preload=(), **settings) as bell:
        bell.tool(find_orders)
        for user, mode in (("user-7", "code"), ("user-8", "direct")):
            async with bell.session(user=user) as session:
                agent = await open_agent(bell, session, ScriptedModel([Says("ok")]))
                assert agent.mode is not None
                assert (agent.mode.mode, agent.mode.arm) == (mode, mode)
                [notice] = [event for event in await all_of(agent) if isinstance(event, Notice)]
                assert f"arm '{mode}'" in notice.text
        async with bell.session(user="user-8") as session:
            agent = await open_agent(bell, session, ScriptedModel([]), mode="code")
            assert agent.mode == ModeChoice("code"), "who says it is in no arm"
            fences = ScriptedModel([], calls_tools=False)
            agent = await open_agent(bell, session, fences, mode="code")
            assert agent.mode == ModeChoice("code")
    arms = totals.report(tmp_path / "divingbell" / totals.FILE_NAME, 7).arms
    assert {arm: sums.answers for arm, sums in arms.items()} == {"code": 1, "direct": 1}
