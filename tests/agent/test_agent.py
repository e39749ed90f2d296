"""The loop of the agent, with a script in the place of the model; all else is real."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.agent.agent import INTERRUPTED, NOT_RUN, Agent
from divingbell.agent.context import was_cut
from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    CodeWritten,
    Done,
    Notice,
    Text,
    UsageTold,
)
from divingbell.agent.history import Answered, Asked, Call, Replied, is_output
from divingbell.agent.limits import AgentLimits
from divingbell.agent.model import ModelFailed, ModelRequest
from divingbell.agent.scripted import Line, Says, ScriptedModel
from divingbell.errors import ConfigError
from divingbell.journal import tokens

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=1) as made:
        yield made


@contextlib.asynccontextmanager
async def agent_of(
    bell: Divingbell, *lines: Line, limits: AgentLimits | None = None, tools: bool = True
) -> AsyncIterator[tuple[Agent, ScriptedModel]]:
    model = ScriptedModel(lines, calls_tools=tools)
    async with bell.session() as session:
        yield Agent(session, model, "You are tested.", limits=limits), model


async def all_of(agent: Agent, text: str = "do it") -> list[AgentEvent]:
    return [event async for event in agent.ask(text)]


def done(events: list[AgentEvent]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def test_code_is_shown_as_it_is_written_then_run_and_the_answer_follows(
    bell: Divingbell,
) -> None:
    async with agent_of(bell, Says("Adding.", "print(1 + 1)"), Says("It is 2.")) as (agent, _):
        events = await all_of(agent)
    written = [event.code for event in events if isinstance(event, CodeWritten)]
    assert written[-1] == "print(1 + 1)"
    assert all("print(1 + 1)".startswith(code) for code in written)
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Adding.It is 2."
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    assert ended.result.text == "2\n"
    assert done(events) == Done("answered", "It is 2.", done(events).total, 2)


async def test_each_request_begins_with_the_one_before(bell: Divingbell) -> None:
    lines = [Says("", f"x{n} = {n}\nprint(x{n})") for n in range(3)]
    async with agent_of(bell, *lines, Says("a"), Says("b")) as (agent, model):
        await all_of(agent)
        await all_of(agent, "and now?")
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.entries[: len(before.entries)] == before.entries
        assert (after.instructions, after.tools) == (before.instructions, before.tools)


async def test_a_script_tells_the_tokens_of_definitions_and_of_the_code_it_wrote(
    bell: Divingbell,
) -> None:
    code = "print('a line of code that is read again')"
    async with agent_of(bell, Says("", code), Says("It is done.")) as (agent, model):
        first, second = [e.usage for e in await all_of(agent) if isinstance(e, UsageTold)]
    request = model.requests[0]
    assert "execute_python" in request.besides and request.besides.startswith(request.instructions)
    asked = request.entries[0].text
    assert first.input_tokens == tokens.count(request.besides) + tokens.count(asked)
    assert first.output_tokens == tokens.count(json.dumps({"code": code}))
    assert second.input_tokens > first.input_tokens + first.output_tokens
    assert second.output_tokens == tokens.count("It is done.")


async def test_definitions_are_counted_once_in_a_conversation(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    besides = ModelRequest.besides.fget
    assert besides is not None

    def written(request: ModelRequest) -> str:
        counted.append(request)
        return besides(request)

    monkeypatch.setattr(ModelRequest, "besides", property(written))
    lines = [Says("", "print(1)")] * 4
    async with agent_of(bell, *lines, Says("a"), Says("b")) as (agent, _):
        await all_of(agent)
        await all_of(agent)
    assert len(counted) == 2, "by the agent, and by the script"


async def test_the_inventory_comes_at_the_end_and_only_when_it_has_changed(
    bell: Divingbell,
) -> None:
    lines = (Says("", "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})"), *[Says("ok")] * 3)
    async with agent_of(bell, *lines) as (agent, _):
        await all_of(agent, "one")
        await all_of(agent, "two")
        await all_of(agent, "three")
    asked = [entry.text for entry in agent.history if isinstance(entry, Asked)]
    assert asked[0] == "one"
    assert asked[1].startswith("two\n") and "df: pandas.DataFrame 2 × 1" in asked[1]
    assert asked[2] == "three"


@pytest.mark.parametrize(
    ("limits", "lines", "reason"),
    [
        (AgentLimits(turns=2), [Says("", "1")] * 3, "turns"),
        (AgentLimits(tokens=10), [Says("", "1")] * 3, "tokens"),
        (AgentLimits(money=0.0), [Says("", "1")] * 3, "money"),
        (AgentLimits(), [Says("", "1 / 0")] * 6, "failing"),
        (AgentLimits(), [Says("")], "empty"),
    ],
)
async def test_it_stops_at_its_limits_and_says_so(
    bell: Divingbell, limits: AgentLimits, lines: list[Line], reason: str
) -> None:
    async with agent_of(bell, *lines, limits=limits) as (agent, _):
        assert done(await all_of(agent)).reason == reason


async def test_after_five_failing_cells_it_stops_but_one_success_begins_anew(
    bell: Divingbell,
) -> None:
    bad, good = Says("", "1 / 0"), Says("", "1")
    async with agent_of(bell, *[bad] * 4, good, *[bad] * 5) as (agent, model):
        assert done(await all_of(agent)).reason == "failing"
        assert len(model.requests) == 10


async def test_an_interrupted_cell_stays_with_what_it_had_shown(bell: Divingbell) -> None:
    other = Call("b", "execute_python", json.dumps({"code": "print('never')"}))
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    first = Call("a", "execute_python", json.dumps({"code": code}))
    async with agent_of(bell, Says(calls=(first, other)), Says("ok")) as (agent, _):
        asking = agent.ask("go")
        async for event in asking:
            if isinstance(event, CellEvent) and "begun" in event.event.text:
                break
        await asking.aclose()
        answers = [entry for entry in agent.history if isinstance(entry, Answered)]
        assert [entry.text for entry in answers] == [f"begun\n{INTERRUPTED}", NOT_RUN]
        assert done(await all_of(agent, "go on")).text == "ok"


async def test_an_interrupted_reply_stays_marked_and_is_never_run(bell: Divingbell) -> None:
    long = Says("word " * 50, "print('never')")
    async with agent_of(bell, long, Says("ok")) as (agent, _):
        asking = agent.ask("go")
        async for event in asking:
            if isinstance(event, Text):
                break
        await asking.aclose()
        last = agent.history[-1]
        assert isinstance(last, Replied) and last.text.endswith(INTERRUPTED) and not last.calls
        events = await all_of(agent, "go on")
    assert not [event for event in events if isinstance(event, CellEnded)]


@pytest.mark.parametrize("arguments", ['{"code": "print(1', "[]", '{"kode": "1"}', "", "nonsense"])
async def test_arguments_that_are_not_whole_run_nothing(bell: Divingbell, arguments: str) -> None:
    call = Call("a", "execute_python", arguments)
    async with agent_of(bell, Says(calls=(call,)), Says("ok")) as (agent, _):
        events = await all_of(agent)
    assert not [event for event in events if isinstance(event, CellEnded)]
    assert [event for event in events if isinstance(event, Notice)]
    [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
    assert "nothing was run" in answer.text


async def test_a_tool_that_is_not_there_is_answered_with_those_that_are(bell: Divingbell) -> None:
    async with agent_of(bell, Says(calls=(Call("a", "rm_rf", "{}"),)), Says("ok")) as (agent, _):
        await all_of(agent)
    [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
    assert "execute_python" in answer.text


async def test_without_tool_use_closed_fences_are_run(bell: Divingbell) -> None:
    said = Says("So:\n```python\nprint(6 * 7)\n```\n```bash\nrm -rf /\n```\n```python\nprint(1)")
    async with agent_of(bell, said, Says("42"), tools=False) as (agent, _):
        events = await all_of(agent)
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    assert ended.result.text == "42\n"
    assert isinstance(agent.history[2], Asked) and "42" in agent.history[2].text
    assert done(events).reason == "answered"


async def test_a_model_that_fails_leaves_nothing_of_a_reply(bell: Divingbell) -> None:
    async with agent_of(bell) as (agent, _):
        with pytest.raises(ModelFailed):
            await all_of(agent)
        assert agent.history == []  # nor of the question, which will be asked again


async def test_long_output_is_cut_head_and_tail(bell: Divingbell) -> None:
    code = "for n in range(20_000): print('line', n)"
    async with agent_of(bell, Says("", code), Says("ok")) as (agent, _):
        await all_of(agent)
        [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
        assert answer.text.startswith("line 0\n")
        assert "line 19999" in answer.text
        assert len(answer.text) < 40_000
        path = answer.text.rpartition("all of it is in /workspace/")[2].rstrip("]")
        whole = (await agent.session.files.get(path)).decode()
    assert whole == "".join(f"line {n}\n" for n in range(20_000))


async def test_output_that_is_too_much_for_the_session_is_kept_once(bell: Divingbell) -> None:
    code = "for n in range(200_000): print('line', n)"
    async with agent_of(bell, Says("", code), Says("ok")) as (agent, _):
        await all_of(agent)
        [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
        assert answer.text.count("/workspace/.outputs/cell-1.txt") >= 1
        whole = (await agent.session.files.get(".outputs/cell-1.txt")).decode()
    assert whole == "".join(f"line {n}\n" for n in range(200_000))


async def test_output_that_finds_no_room_in_a_file_says_so(bell: Divingbell) -> None:
    code = (
        "try:\n  file = open('full', 'wb', buffering=0)\n  while file.write(b'x' * 4096): pass\n"
        "except OSError: print('word ' * 20_000)"
    )
    model = ScriptedModel([Says("", code), Says("ok")])
    async with bell.session(disk="4MB") as session:
        agent = Agent(session, model, "You are tested.")
        await all_of(agent)
    [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
    assert "could not be kept" in answer.text and "all of it is in" not in answer.text


async def test_a_hundred_megabytes_are_printed_and_the_answer_goes_on(bell: Divingbell) -> None:
    code = "for n in range(100): print('x' * (1 << 20))"
    async with agent_of(bell, Says("", code), Says("That was much.")) as (agent, _):
        events = await all_of(agent)
    assert done(events).text == "That was much."
    [answer] = [entry for entry in agent.history if isinstance(entry, Answered)]
    assert len(answer.text) < 40_000


async def test_code_that_asks_at_stdin_is_told_that_nobody_answers(bell: Divingbell) -> None:
    async with agent_of(bell, Says("", "name = input('Who? ')"), Says("ok")) as (agent, _):
        events = await all_of(agent)
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    assert ended.result.status == "error"
    assert done(events).reason == "answered"


async def test_a_model_that_says_nothing_has_not_answered(bell: Divingbell) -> None:
    async with agent_of(bell, Says("")) as (agent, _):
        assert done(await all_of(agent)).reason == "empty"


async def test_images_go_only_to_models_that_see(bell: Divingbell) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    lines = [Says("", plot), Says("There."), Says("", plot), Says("Again.")]
    async with agent_of(bell, *lines) as (agent, model):
        await all_of(agent)
        assert model.requests[-1].entries[2].images  # type: ignore[union-attr]
        blind = ScriptedModel(lines[2:], sees_images=False)
        agent.use(blind)
        await all_of(agent)
    assert not any(getattr(entry, "images", ()) for entry in blind.requests[-1].entries)


async def test_a_model_that_reads_conversations_otherwise_is_refused(bell: Divingbell) -> None:
    async with agent_of(bell, Says("First.")) as (agent, model):
        with pytest.raises(ConfigError, match="calls tools and the other does not"):
            agent.use(ScriptedModel([], calls_tools=False))
        assert agent.model is model


async def test_past_its_share_of_the_window_old_outputs_become_one_line_in_one_step(
    bell: Divingbell,
) -> None:
    lines = [Says("", f"print('word ' * 1_000, {n})") for n in range(12)]
    async with agent_of(bell, *lines, Says("ok")) as (agent, model):
        model.window = 12_000
        agent = Agent(agent.session, model, "You are tested.")
        events = await all_of(agent)
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert 1 <= len(notices) <= 3, "in one step, and then there is room for a while"
    outputs = [entry.text for entry in agent.history if isinstance(entry, Answered)]
    assert "no longer shown" in outputs[0]
    assert "no longer shown" not in outputs[-1]


async def test_outputs_of_fences_become_short_too_and_stay_outputs(bell: Divingbell) -> None:
    lines = [Says(f"```python\nprint('word ' * 1_000, {n})\n```") for n in range(12)]
    async with agent_of(bell, *lines, Says("ok"), tools=False) as (agent, model):
        model.window = 12_000
        agent = Agent(agent.session, model, "You are tested.")
        events = await all_of(agent)
        assert [event for event in events if isinstance(event, Notice)]
        outputs = [entry.text for entry in agent.history if is_output(entry)]
        assert len(outputs) == 12
        assert "no longer shown" in outputs[0] and "no longer shown" not in outputs[-1]
        assert agent.undo() and not agent.undo(), "it was one exchange"


def test_a_provider_that_has_read_much_less_than_was_sent_has_cut_it() -> None:
    assert was_cut(10_000, 4_096)
    assert not was_cut(10_000, 9_000)
    assert not was_cut(1_000, 100), "short prompts differ by what providers add"
    assert not was_cut(10_000, 0), "some count nothing"


async def test_the_last_exchange_is_taken_back_and_variables_stay(bell: Divingbell) -> None:
    lines = [Says("", "x = 1"), Says("First."), Says("", "y = 2"), Says("Second."), Says("Third.")]
    async with agent_of(bell, *lines) as (agent, model):
        await all_of(agent, "one")
        before = list(agent.history)
        await all_of(agent, "two")
        assert agent.undo()
        assert agent.history == before
        await all_of(agent, "three")
        told = model.requests[-1].entries[-1].text
        assert told.startswith("three") and "y: int" in told  # what is there is told again
        assert agent.undo() and agent.undo() and not agent.undo()
        assert agent.history == []


async def test_the_output_of_code_is_no_exchange_where_the_model_calls_no_tools(
    bell: Divingbell,
) -> None:
    lines = [Says("```python\nprint(1)\n```"), Says("It is 1.")]
    async with agent_of(bell, *lines, tools=False) as (agent, model):
        await all_of(agent)
        again = Agent(agent.session, model, "", history=agent.history)
    assert again.undo() and again.history == []


async def test_the_person_s_words_are_hidden_before_the_model_reads_them(bell: Divingbell) -> None:
    async def hide(text: str) -> str:
        return text.replace("secret", "[hidden]")

    model = ScriptedModel([Says("Done.")])
    async with bell.session() as session:
        await session.files.put("secret.txt", "1")
        await all_of(Agent(session, model, "", hide=hide), "my secret")
    told = model.requests[0].entries[0].text
    assert told.startswith("my [hidden]") and "/workspace/[hidden].txt" in told


async def test_another_model_goes_on_with_the_conversation(bell: Divingbell) -> None:
    async with agent_of(bell, Says("First.")) as (agent, _):
        await all_of(agent, "one")
        other = ScriptedModel([Says("Second.")], name="scripted:other")
        agent.use(other)
        await all_of(agent, "two")
    assert [entry.text for entry in other.requests[0].entries][:2] == ["one", "First."]
