"""Models over HTTP: the four formats, streamed by a real server, and what it may do wrong."""

import contextlib
import gzip
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Literal, get_args

import pytest
from pydantic_ai.messages import PartStartEvent, ToolCallPart
from pydantic_ai.models import KnownModelName
from starlette.responses import Response

from divingbell import Divingbell
from divingbell.agent import choosing
from divingbell.agent.agent import Agent
from divingbell.agent.events import (
    CellEnded,
    CodeWritten,
    Done,
    Notice,
    Text,
    Thinking,
    UsageTold,
)
from divingbell.agent.model import ModelFailed
from divingbell.agent.providers import MAX_REPLY, PART, Writing, connect
from divingbell.errors import ConfigError
from divingbell.settings.agent import AgentSettings
from tests.agent.provider_server import (
    SIGNATURE,
    ProviderServer,
    Say,
    breaks_off,
    hangs,
    pinging,
    raw,
    serving,
    status,
)

pytestmark = pytest.mark.anyio
STOPS: dict[str, Literal["length", "refused"]] = {"length": "length", "refused": "refused"}
CONVERSATION = {"google": "contents", "responses": "input"}
"""Where a body has the conversation, if it is not in `messages`."""
FORMATS = {
    "anthropic": ("anthropic:claude-sonnet-5", ""),
    "openai": ("openai-chat:local", "/v1"),
    "responses": ("openai:gpt-5.5", "/v1"),
    "google": ("google:gemini-2.5-pro", ""),
}


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=1) as made:
        yield made


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    async with serving() as made:
        yield made


@contextlib.asynccontextmanager
async def agent_of(
    bell: Divingbell, server: ProviderServer, format: str, key: str | None = "sk-test"
) -> AsyncIterator[Agent]:
    name, path = FORMATS[format]
    model = connect(name, base_url=server.url + path, key=key)
    try:
        async with bell.session() as session:
            yield Agent(session, model, "You are tested.")
    finally:
        await model.close()


@pytest.mark.parametrize("format", FORMATS)
async def test_a_reply_is_streamed_run_and_answered(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    server.says = [Say("Adding.", "print(20 + 22)"), Say("It is 42.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("add")]
    written = [event.code for event in events if isinstance(event, CodeWritten)]
    assert written[-1] == "print(20 + 22)"
    assert len(written) > 2 or format == "google", "Google sends arguments whole"
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    assert ended.result.text == "42\n"
    told = [event.usage for event in events if isinstance(event, UsageTold)]
    assert all(usage.output_tokens == 12 and usage.input_tokens >= 50 for usage in told)
    assert isinstance(events[-1], Done) and events[-1].text == "It is 42."


@pytest.mark.parametrize("format", FORMATS)
async def test_thoughts_are_shown_as_such_and_go_back_signed_where_they_are_wanted(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    thoughts = "First I add, then I look."
    server.says = [Say("Adding.", "print(20 + 22)", thinking=thoughts), Say("It is 42.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("add")]
    assert "".join(event.text for event in events if isinstance(event, Thinking)) == thoughts
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Adding.It is 42."
    assert isinstance(events[-1], Done) and events[-1].text == "It is 42."
    back = server.bodies[1].decode()
    assert (SIGNATURE in back) == (format in ("anthropic", "responses"))
    assert thoughts in back or format in ("google", "openai")


@pytest.mark.parametrize("format", FORMATS)
async def test_a_call_with_broken_arguments_in_a_whole_reply_is_never_run(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    half = json.dumps({"code": "print('no')"})[:-4]
    server.says = [Say("", "print('no')", arguments=half), Say("", "print('yes')"), Say("Done.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("go")]
    assert isinstance(events[-1], Done) and events[-1].reason == "answered"
    assert [event.result.text for event in events if isinstance(event, CellEnded)] == ["yes\n"]
    for body in map(json.loads, server.bodies[1:]):
        called, answered = _calls_in(body)
        assert called and called == answered, "the model is told"
        written = [part["arguments"] for part in _objects(body) if "arguments" in part]
        assert all(isinstance(json.loads(each), dict) for each in written), "servers read it"


@pytest.mark.parametrize("format", FORMATS)
async def test_each_request_begins_with_the_bytes_of_the_one_before(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    server.says = [Say("", "x = 1"), Say("a"), Say("", "y = 2"), Say("b")]
    async with agent_of(bell, server, format) as agent:
        for text in ("one", "two"):
            async for _ in agent.ask(text):
                pass
    key = CONVERSATION.get(format, "messages")
    said = [_parted(body, key) for body in server.bodies]
    assert len(said) == 4
    for (rest, before), (rest_after, after) in itertools.pairwise(said):
        assert rest_after == rest
        assert after.startswith(before) and len(after) > len(before)


async def test_anthropic_is_told_what_to_keep_in_its_cache(
    bell: Divingbell, server: ProviderServer
) -> None:
    server.says = [Say("ok")]
    async with agent_of(bell, server, "anthropic") as agent:
        events = [event async for event in agent.ask("one")]
    [body] = map(json.loads, server.bodies)
    assert body["system"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["tools"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["tools"][-1]["eager_input_streaming"] is True
    [told] = [event for event in events if isinstance(event, UsageTold)]
    assert told.usage.cached_tokens == 40
    assert told.usage.cost is not None and told.usage.cost > 0


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("say", [Say("Half a", None, False), Say("", "print('no')", False)])
async def test_a_stream_that_ends_early_is_never_run(
    bell: Divingbell, server: ProviderServer, format: str, say: Say
) -> None:
    server.says = [say]
    async with agent_of(bell, server, format) as agent:
        try:
            events = [event async for event in agent.ask("go")]
        except ModelFailed:
            return
    assert not [event for event in events if isinstance(event, CellEnded)]
    assert isinstance(events[-1], Done) and events[-1].reason == "cut"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stop", ["length", "refused", "cut"])
async def test_after_a_reply_that_was_cut_short_no_call_lacks_an_answer(
    bell: Divingbell, server: ProviderServer, format: str, stop: str
) -> None:
    half = Say("Let me see. ", "print('no')", ends=stop != "cut", stop=STOPS.get(stop, ""))
    server.says = [half, Say("", "print('yes')"), Say("It is yes.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("one")]
        assert isinstance(events[-1], Done) and events[-1].reason == stop
        assert events[-1].text == "Let me see. ", "the mark is for the model"
        events += [event async for event in agent.ask("two")]
    assert [event.result.text for event in events if isinstance(event, CellEnded)] == ["yes\n"]
    for body in server.bodies:
        called, answered = _calls_in(json.loads(body))
        assert called == answered
    [cut] = [text for text in _texts_in(json.loads(server.bodies[1])) if "Let me see." in text]
    assert "nothing of it was run" in cut and "'no'" not in str(server.bodies[1])


@pytest.mark.parametrize("format", FORMATS)
async def test_blanks_alone_do_not_go_back_to_a_provider(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    server.says = [Say(" \n"), Say("\n\n", "x = 1"), Say("Done.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("one")]
        assert isinstance(events[-1], Done) and events[-1].reason == "empty"
        events = [event async for event in agent.ask("two")]
        assert isinstance(events[-1], Done) and events[-1].reason == "answered"
    for body in server.bodies:
        assert all(text.strip() for text in _texts_in(json.loads(body)))
    assert "[no answer]" in _texts_in(json.loads(server.bodies[1]))


HTML = "<html><body>502 Bad Gateway</body></html>"
ERROR = json.dumps({"error": {"type": "x", "message": "said by the provider"}})
FAULTS = {
    "wrong key": (status(401, ERROR), "key"),
    "no such model": (status(404, ERROR), "model"),
    "too many": (status(429, ERROR, **{"retry-after-ms": "10"}), "rate"),
    "its failure": (status(500, ERROR), "server"),
    "a page": (status(502, HTML, "text/html"), "server"),
    "a page with 200": (status(200, HTML, "text/html"), None),
    "broken events": (raw(b"data: {nonsense\n\n", b"data: []\n\n"), None),
    "nothing": (raw(), None),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_failures_are_said_in_words_and_nothing_runs(
    bell: Divingbell,
    server: ProviderServer,
    format: str,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, kind = FAULTS[fault]
    monkeypatch.setattr("divingbell.agent.providers.PAUSES", (0.01,))
    server.says = [make] * 6
    async with agent_of(bell, server, format) as agent:
        try:
            events = [event async for event in agent.ask("go")]
        except ModelFailed as error:
            expected = "reply" if (format, fault) == ("openai", "a page with 200") else kind
            assert expected is None or error.kind == expected
            assert len(str(error)) < 900 and "\n" not in str(error)
            assert "sk-test" not in str(error)
        else:
            assert kind is None
            assert isinstance(events[-1], Done) and events[-1].reason in ("cut", "empty")
    if kind is not None:
        asked = 2 if kind in ("rate", "server") else 1
        assert len(server.bodies) == asked, "once more, where that may help"


@pytest.mark.parametrize("format", FORMATS)
async def test_a_provider_that_is_busy_is_asked_again_and_that_is_told(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    busy = status(429, ERROR, **{"retry-after-ms": "10"})
    server.says = [busy, busy, Say("Here I am.")]
    async with agent_of(bell, server, format) as agent:
        events = [event async for event in agent.ask("go")]
    words = f"{FORMATS[format][0]}: too many requests; asking again in 1 s"
    assert [event for event in events if isinstance(event, Notice)] == [Notice(words)] * 2
    assert isinstance(events[-1], Done) and events[-1].text == "Here I am."


async def test_one_that_wants_to_be_left_alone_for_long_is_not_waited_for(
    bell: Divingbell, server: ProviderServer
) -> None:
    server.says = [status(429, ERROR, **{"retry-after": "3600"})]
    async with agent_of(bell, server, "openai") as agent:
        with pytest.raises(ModelFailed, match="again in 3600 s"):
            [event async for event in agent.ask("go")]


async def test_a_server_that_has_read_a_part_of_what_it_was_sent_is_told_of(
    bell: Divingbell, server: ProviderServer
) -> None:
    server.says = [Say("What was it?")]  # it always says that it has read 50 tokens
    async with agent_of(bell, server, "openai") as agent:
        events = [event async for event in agent.ask("many words " * 3_000)]
    [notice] = [event.text for event in events if isinstance(event, Notice)]
    assert notice.startswith("openai-chat:local has read 50 tokens of about ")
    assert "OLLAMA_CONTEXT_LENGTH" in notice


async def test_a_reply_that_breaks_off_is_not_called_out_of_reach(
    bell: Divingbell, server: ProviderServer
) -> None:
    server.says = [breaks_off]
    async with agent_of(bell, server, "openai") as agent:
        with pytest.raises(ModelFailed, match="broke off in the middle"):
            [event async for event in agent.ask("go")]


async def test_an_address_that_lacks_its_end_is_told_with_what_to_try(
    bell: Divingbell, server: ProviderServer
) -> None:
    model = connect("openai-chat:local", base_url=f"{server.url}/", key=None)
    server.says = [status(404, "Not Found", "text/plain")]
    async with bell.session() as session:
        agent = Agent(session, model, "You are tested.")
        with pytest.raises(ModelFailed, match=f"most servers want {server.url}/v1"):
            [event async for event in agent.ask("go")]
    await model.close()


async def test_silence_is_given_up(
    bell: Divingbell, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.agent.providers.SILENCE", 0.3)
    server.says = [hangs(5)] * 6
    async with agent_of(bell, server, "openai") as agent:
        with pytest.raises(ModelFailed) as failed:
            [event async for event in agent.ask("go")]
    assert failed.value.kind in ("timeout", "connection")


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses"])  # Google's takes none
async def test_signs_of_life_without_a_word_are_given_up(
    bell: Divingbell, server: ProviderServer, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.agent.providers.REQUEST_TIMEOUT", 0.5)
    server.says = [pinging] * 6
    async with agent_of(bell, server, format) as agent:
        with pytest.raises(ModelFailed) as failed:
            [event async for event in agent.ask("go")]
    assert failed.value.kind == "timeout"


async def test_an_endless_reply_is_cut_off(
    bell: Divingbell, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.agent.providers.MAX_REPLY", 1_000)
    server.says = [Say("word " * 10_000)]
    async with agent_of(bell, server, "anthropic") as agent:
        with pytest.raises(ModelFailed, match="cut off"):
            [event async for event in agent.ask("go")]


@pytest.mark.parametrize("fault", ["line", "error"])
@pytest.mark.parametrize("format", FORMATS)
async def test_an_answer_without_an_end_is_not_kept(
    bell: Divingbell,
    server: ProviderServer,
    format: str,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("divingbell.agent.answers.MOST_BYTES", 100_000)
    endless = itertools.repeat(b"x" * 10_000)
    server.says = [raw(b"data: ", *itertools.islice(endless, 20))]
    if fault == "error":
        server.says = [status(400, "x" * 200_000)]
    async with agent_of(bell, server, format) as agent:
        with pytest.raises(ModelFailed, match="cut off") as failed:
            [event async for event in agent.ask("go")]
    assert failed.value.kind == "reply" and len(server.bodies) == 1


@pytest.mark.parametrize("format", FORMATS)
async def test_a_compressed_answer_is_not_asked_for_and_not_taken(
    bell: Divingbell, server: ProviderServer, format: str
) -> None:
    packed = gzip.compress(b"data: " + b"x" * 100_000)
    compressed = partial(Response, packed, headers={"Content-Encoding": "gzip"})
    server.says = [lambda request: compressed(media_type="text/event-stream")]
    async with agent_of(bell, server, format) as agent:
        with pytest.raises(ModelFailed, match="compresses"):
            [event async for event in agent.ask("go")]
    assert server.headers[0]["accept-encoding"] == "identity"


def test_a_reply_of_many_calls_that_say_nothing_is_cut_off() -> None:
    writing = Writing()
    with pytest.raises(ModelFailed, match="cut off"):
        for number in range(MAX_REPLY // PART + 1):
            part = ToolCallPart("f", "", f"call_{number}")
            writing.take(PartStartEvent(index=number, part=part))


async def test_an_address_of_ones_own_is_sent_no_key_of_the_environment(
    bell: Divingbell, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "sk-secret-of-the-environment")
    for format in FORMATS:
        server.says = [Say("ok")]
        async with agent_of(bell, server, format, key=None) as agent:
            async for _ in agent.ask("go"):
                pass
        assert "sk-secret-of-the-environment" not in str(server.headers[-1]), format


def test_windows_are_those_that_the_model_layer_knows_or_that_were_said() -> None:
    def window(name: str, said: int | None = None) -> int | None:
        return connect(name, base_url="http://localhost:1/v1", window=said).window

    known = window("anthropic:claude-sonnet-5")
    assert known is not None and known >= 200_000
    assert window("openai-chat:local") is None
    assert window("openai-chat:local", 8_000) == 8_000
    assert window("anthropic:claude-sonnet-5", 100_000) == 100_000


async def test_ollama_is_asked_at_its_address(
    bell: Divingbell, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OLLAMA_BASE_URL"):
        connect("ollama:qwen3")
    monkeypatch.setenv("OLLAMA_API_KEY", "sk-secret-of-the-environment")
    server.says = [Say("Adding.", "print(20 + 22)"), Say("It is 42.")]
    model = connect("ollama:qwen3", base_url=f"{server.url}/v1")
    async with bell.session() as session:
        events = [event async for event in Agent(session, model, "You are tested.").ask("add")]
    await model.close()
    [ended] = [event for event in events if isinstance(event, CellEnded)]
    assert ended.result.text == "42\n"
    assert isinstance(events[-1], Done) and events[-1].text == "It is 42."
    assert [json.loads(body)["model"] for body in server.bodies] == ["qwen3"] * 2
    assert "sk-secret-of-the-environment" not in str(server.headers)


@pytest.mark.parametrize("name", ["gpt-5", "nobody:x", "anthropic", "", "a:b:c"])
def test_a_name_that_is_none_says_how_one_looks(name: str) -> None:
    with pytest.raises(ConfigError):
        connect(name)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        connect("anthropic:claude-sonnet-5")


def test_the_models_that_keys_choose_are_known() -> None:
    for name in choosing.BY_KEY.values():
        assert name in get_args(KnownModelName.__value__), name


def test_without_a_key_the_ways_to_begin_are_named() -> None:
    with pytest.raises(ConfigError, match="ollama") as refused:
        choosing.choose(AgentSettings(), {})
    assert "--demo" in str(refused.value)


def test_a_key_chooses_its_model_and_a_named_model_comes_first() -> None:
    keys = {"OPENAI_API_KEY": "x"}
    assert choosing.choose(AgentSettings(), keys).name.startswith("openai:")
    assert choosing.choose(AgentSettings(model="ollama:q"), keys).name == "ollama:q"


def test_a_key_that_is_named_must_be_there() -> None:
    settings = AgentSettings(model="openai-chat:q", base_url="http://h", key_variable="MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY"):
        choosing.choose(settings, {"OPENAI_API_KEY": "x"})
    assert choosing.choose(settings, {"MY_KEY": "k"}).key == "k"


def test_a_model_without_its_key_is_told_before_it_is_asked() -> None:
    settings = AgentSettings(model="anthropic:claude-sonnet-5")
    with pytest.raises(ConfigError, match="export ANTHROPIC_API_KEY"):
        choosing.choose(settings, {"OPENAI_API_KEY": "x"})
    assert choosing.choose(settings, {"ANTHROPIC_API_KEY": "x"}).name == settings.model
    other = AgentSettings(model="openai:gpt-5.5")
    assert choosing.choose(other, {"OPENAI_BASE_URL": "http://localhost"}).key is None


def _calls_in(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the calls in a body, and the answers to calls, by what binds them together."""
    calls, answers = [], []
    for part in _objects(body):
        kind = part.get("type")
        if kind == "tool_use" or kind == "function_call":
            calls.append(part.get("call_id") or part["id"])
        elif kind == "tool_result" or kind == "function_call_output":
            answers.append(part.get("call_id") or part["tool_use_id"])
        elif kind == "function" and "id" in part:
            calls.append(part["id"])
        elif part.get("role") == "tool":
            answers.append(part["tool_call_id"])
        elif "functionCall" in part:
            calls.append(part["functionCall"]["name"])
        elif "functionResponse" in part:
            answers.append(part["functionResponse"]["name"])
    return calls, answers


def _texts_in(body: dict[str, Any]) -> list[str]:
    """Return the texts of the conversation in a body."""
    found = []
    for part in _objects([body.get(name) for name in ("messages", "input", "contents")]):
        found += [part[name] for name in ("text", "content") if isinstance(part.get(name), str)]
    return found


def _objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _objects(each)


_MARK = re.compile(rb',"cache_control":\{[^{}]*\}')
"""Marks for the cache move on with each request; the provider does not count them."""


def _parted(body: bytes, key: str) -> tuple[bytes, bytes]:
    """Return a body without its conversation, and the conversation without the end of its list, in
    the bytes that were sent."""
    found = _MARK.sub(b"", body)
    before, said, text = found.decode().partition(f'"{key}":')
    conversation, size = json.JSONDecoder().raw_decode(text.lstrip())
    assert isinstance(conversation, list)
    size += len(text) - len(text.lstrip())
    return (before + said + text[size:]).encode(), text[: size - 1].encode()
