"""Tools of upstream servers that a client sees directly, and all that passes with them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import mcp_types as types
import pytest
from mcp import Client, MCPError

from divingbell import Divingbell
from divingbell.border.border import OpenBorder
from divingbell.border.walk import with_texts
from divingbell.principal import Principal
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.definitions import NAMES
from divingbell.surfaces.mcp.passthrough.call_contexts import CallContexts
from divingbell.surfaces.mcp.server import Surface
from tests import real_servers
from tests.audit import making
from tests.audit.test_log import full
from tests.surfaces.mcp.conftest import Era, Listener, text_of
from tests.waiting import PATIENCE, until

DENIED = "test_embedded_resource"
PLACES = {"folder": "log", "heads": "heads"}


def _entry(name: str, **more: Any) -> dict[str, Any]:
    command, arguments = real_servers.fixture(name)
    return {"command": command, "args": arguments, **more}


@pytest.fixture(scope="module")
async def bell_with_suite() -> AsyncIterator[Divingbell]:
    async with Divingbell(
        pool=0,
        mode="hybrid",
        servers={
            "suite": _entry("conformance", direct=["*", "!test_audio*"]),
            "shop": _entry("workshop"),
        },
        policy={
            "rules": [
                {"tools": [f"suite.{DENIED}"], "action": "deny"},
                {"tools": ["suite.test_image_content"], "action": "ask"},
                {"tools": ["suite.get_prompt"], "when": {"name": "*image"}, "action": "deny"},
            ]
        },
    ) as bell:
        yield bell


@pytest.fixture
async def surface(bell_with_suite: Divingbell) -> AsyncIterator[Surface]:
    surface = Surface(bell_with_suite)
    yield surface
    await surface.close()


async def test_chosen_tools_stand_beside_our_own(client: Client) -> None:
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) >= NAMES
    assert "test_simple_text" in listed
    assert "test_audio_content" not in listed, "it was not chosen"
    assert "echo" not in listed and "shop__echo" not in listed, "that server was not chosen"
    assert DENIED not in listed, "the policy denies it"


async def test_a_search_names_the_servers_to_look_closer_in_unless_one_was_named(
    client: Client,
) -> None:
    async def found(**given: str) -> str:
        return text_of(await client.call_tool("search_tools", {"query": "echo text", **given}))

    line = found_line(await found())
    assert re.fullmatch(
        r"\[best servers: \w+ \(\d+ tools\), \w+ \(\d+ tools\); server= searches one of them\]",
        line,
    )
    assert found_line(await found(server="shop")) == ""
    assert found_line(await found(query="")) == ""
    both = (await found(detail_level="servers")).splitlines()
    assert sorted(one.partition(":")[0] for one in both) == ["shop", "suite"]


def found_line(shown: str) -> str:
    return next((line for line in shown.splitlines() if line.startswith("[best")), "")


async def test_schemas_pass_as_they_are(client: Client) -> None:
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    schema = listed["json_schema_2020_12_tool"].input_schema
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    assert schema["if"] and schema["then"] and schema["else"]


async def test_results_pass_with_all_their_parts(client: Client) -> None:
    result = await client.call_tool("test_multiple_content_types", {})
    kinds = [block.type for block in result.content]
    assert kinds == ["text", "image", "resource"]


async def test_a_tools_own_error_is_an_error(client: Client) -> None:
    result = await client.call_tool("test_error_handling", {})
    assert result.is_error and "intentionally" in text_of(result)


async def test_a_denied_tool_can_not_be_called_by_its_name(client: Client) -> None:
    with pytest.raises(MCPError):
        await client.call_tool(DENIED, {})


async def test_arguments_are_checked_before_they_leave(client: Client) -> None:
    result = await client.call_tool("test_sampling", {"prompt": 5})
    assert result.is_error and "prompt" in text_of(result)


async def test_approval_is_asked_for_direct_calls_too(client: Client, listener: Listener) -> None:
    result = await client.call_tool("test_image_content", {})
    assert not result.is_error and len(listener.asked) == 1
    listener.answer = types.ElicitResult(action="decline")
    result = await client.call_tool("test_image_content", {})
    assert result.is_error and "denied" in text_of(result)


async def test_progress_passes(client: Client, listener: Listener) -> None:
    await client.call_tool("test_tool_with_progress", {}, progress_callback=listener.on_progress)
    assert [part for part, _ in listener.progress] == [0, 50, 100]


async def test_logs_pass_to_those_who_want_them(surface: Surface, era: Era) -> None:
    listener = Listener()
    async with Client(surface.server, mode=era, log_level="info", **listener.options()) as client:
        await client.call_tool("test_tool_with_logging", {})
        await until(lambda: len(listener.logs) == 3, "all lines have come")
    assert listener.logs[0] == "Tool execution started"


async def test_logs_below_the_level_that_was_asked_for_do_not_pass(surface: Surface) -> None:
    listener = Listener()
    async with Client(surface.server, mode="legacy", **listener.options()) as client:
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="error"))
        await client.session.send_request(request, types.EmptyResult)
        await client.call_tool("test_tool_with_logging", {})
    assert listener.logs == []


async def test_questions_pass_to_the_person(client: Client, listener: Listener) -> None:
    listener.answer = types.ElicitResult(
        action="accept", content={"username": "u", "email": "e@example.org"}
    )
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert listener.asked == ["suite asks: Who are you?"]
    assert "e@example.org" in text_of(result)


async def test_a_client_without_a_person_declines(surface: Surface, era: Era) -> None:
    async with Client(surface.server, mode=era, cache=None) as client:
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "action=decline" in text_of(result)


async def test_questions_to_the_model_pass(surface: Surface, era: Era) -> None:
    async def sample(context: Any, params: types.CreateMessageRequestParams) -> Any:
        content = types.TextContent(text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async with Client(surface.server, mode=era, sampling_callback=sample, cache=None) as client:
        result = await client.call_tool("test_sampling", {"prompt": "Capital of France?"})
    assert text_of(result) == "LLM response: Paris"


async def test_a_client_without_a_model_is_told_what_is_missing(surface: Surface) -> None:
    async with Client(surface.server, cache=None) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("test_missing_capability", {})
    assert raised.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_several_questions_come_in_one_answer_under_the_servers_own_keys(
    surface: Surface,
) -> None:
    async def sample(context: Any, params: Any) -> Any:
        raise AssertionError

    async def roots(context: Any) -> Any:
        raise AssertionError

    listener = Listener()
    async with Client(
        surface.server, sampling_callback=sample, list_roots_callback=roots, **listener.options()
    ) as client:
        asked = await client.session.call_tool(
            "test_input_required_result_multiple_inputs", {}, allow_input_required=True
        )
    assert isinstance(asked, types.InputRequiredResult) and asked.input_requests
    assert set(asked.input_requests) == {"user_name", "greeting", "client_roots"}


async def test_cancelling_passes() -> None:
    servers = {"shop": _entry("workshop", direct=["sleep", "cancellations"])}
    async with Divingbell(pool=0, mode="hybrid", servers=servers) as bell:
        surface = Surface(bell)
        for era in get_args(Era):
            async with Client(surface.server, mode=era, cache=None) as client:
                given = {"seconds": 300, "name": era}
                call = asyncio.create_task(client.call_tool("sleep", given))
                # Requests are answered in the order in which they began to be served.
                await client.call_tool("cancellations", {})
                call.cancel()
                await asyncio.wait([call])
                async with asyncio.timeout(PATIENCE):
                    while era not in text_of(await client.call_tool("cancellations", {})):
                        pass
        await surface.close()


async def test_questions_are_declined_where_the_policy_says_so(listener: Listener) -> None:
    servers = {"suite": _entry("conformance", direct=["*"])}
    policy = {"elicitation": "decline", "calls_per_cell": 1, "calls_per_session": 3}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, policy=policy) as bell:
        surface = Surface(bell)
        async with Client(surface.server, **listener.options()) as client:
            for _ in range(3):
                result = await client.call_tool("test_elicitation", {"message": "Who?"})
                assert "action=decline" in text_of(result)
            assert listener.asked == []
            spent = await client.call_tool("test_simple_text", {})
            assert spent.is_error, "the budget of a session holds for a client too"
        await surface.close()


# Resources, prompts, completions, changes


async def test_resources_pass(client: Client) -> None:
    listed = [item.uri for item in (await client.list_resources()).resources]
    assert "test://static-text" in listed
    [content] = (await client.read_resource("test://static-text")).contents
    assert isinstance(content, types.TextResourceContents) and "static text" in content.text
    [made] = (await client.read_resource("test://template/123/data")).contents
    assert isinstance(made, types.TextResourceContents) and "123" in made.text
    with pytest.raises(MCPError) as raised:
        await client.read_resource("test://no-such-thing")
    assert raised.value.error.data == {"uri": "test://no-such-thing"}


async def test_templates_pass(client: Client) -> None:
    listed = (await client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in listed][1:] == ["test://template/{id}/data"]


async def test_prompts_pass_under_the_same_rules(client: Client) -> None:
    listed = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert "test_prompt_with_arguments" in listed
    got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    assert "arg1='a'" in got.model_dump_json()
    with pytest.raises(MCPError, match="policy"):
        await client.get_prompt("test_prompt_with_image")
    with pytest.raises(MCPError, match="no prompt"):
        await client.get_prompt("nobody")


async def test_completions_pass(client: Client) -> None:
    for ref in (
        types.PromptReference(name="test_prompt_with_arguments"),
        types.ResourceTemplateReference(uri="test://template/{id}/data"),
    ):
        found = await client.complete(ref, {"name": "arg1", "value": "par"})
        assert found.completion.values == ["par-one", "par-two"]


async def test_changes_of_lists_are_told_in_the_older_protocol(surface: Surface) -> None:
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.append(message)

    async with Client(surface.server, mode="legacy", message_handler=hear) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed
        await client.call_tool("test_trigger_tool_change", {})
        await client.call_tool("test_trigger_prompt_change", {})
        kinds = types.ToolListChangedNotification, types.PromptListChangedNotification
        for kind in kinds:
            await until(lambda kind=kind: any(isinstance(one, kind) for one in heard), str(kind))  # type: ignore[misc]


async def test_without_hybrid_mode_nothing_is_passed_through(
    bell_with_shop: Divingbell, era: Era
) -> None:
    surface = Surface(bell_with_shop)
    async with Client(surface.server, mode=era, cache=None) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
        assert client.server_capabilities.prompts is None
        with pytest.raises(MCPError):
            await client.call_tool("echo", {"text": "x"})
    await surface.close()


async def test_with_several_servers_names_have_the_server_in_front() -> None:
    both = {"one": _entry("workshop", direct=["echo"]), "two": _entry("workshop", direct=["ec*"])}
    async with Divingbell(pool=0, mode="hybrid", servers=both) as bell:
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == NAMES | {"one__echo", "two__echo"}
            assert "hi" in text_of(await client.call_tool("two__echo", {"text": "hi"}))
            prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
            assert prompts == {"one__greeting", "two__greeting"}
            got = await client.get_prompt("one__greeting", {"name": "Ann"})
            assert "Ann" in got.model_dump_json()
            with pytest.raises(MCPError):
                await client.get_prompt("three__greeting", {"name": "Ann"})
        await surface.close()


async def test_a_dead_server_takes_nothing_from_the_others() -> None:
    servers = {
        "dead": {"command": "/no/such/program", "direct": ["*"]},
        "off": {"command": "/no/such/program", "direct": ["*"], "enabled": False},
        "shop": _entry("workshop", direct=["echo"]),
    }
    async with Divingbell(pool=0, mode="hybrid", servers=servers) as bell:
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            assert "shop__echo" in {tool.name for tool in (await client.list_tools()).tools}
            sign = ["divingbell://servers/shop/shop://sign"]
            assert [one.uri for one in (await client.list_resources()).resources] == sign
            assert [one.name for one in (await client.list_prompts()).prompts] == ["shop__greeting"]
            ref = types.PromptReference(name="dead__greeting")
            with pytest.raises(MCPError, match="dead"):
                await client.complete(ref, {"name": "name", "value": "a"})
            await bell.gateway.remove("dead")
            assert [one.uri for one in (await client.list_resources()).resources] == sign
            found = text_of(await client.call_tool("search_tools", {"query": "echo"}))
            assert "shop.echo" in found and "not available: off" in found
        await surface.close()


# What is asked directly passes the same door


@asynccontextmanager
async def suite(policy: dict[str, Any], era: Era = "auto", **options: Any) -> AsyncIterator[Client]:
    """A client of a Divingbell with one server, under these rules."""
    servers = {"suite": _entry("conformance", direct=["*"])}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, policy=policy) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None, **options) as client:
            yield client
        await surface.close()


PROMPT = types.PromptReference(name="test_prompt_with_arguments")
TEMPLATE = types.ResourceTemplateReference(uri="test://template/{id}/data")
PAR = {"name": "arg1", "value": "par"}


async def test_completions_have_rules_and_a_budget(era: Era) -> None:
    async with suite({"default": "deny", "calls_per_session": 3}, era) as client:
        for ref in (PROMPT, TEMPLATE, PROMPT):
            with pytest.raises(MCPError, match=r"suite.complete is denied by policy"):
                await client.complete(ref, PAR)
        with pytest.raises(MCPError, match="all 3 calls are used"):
            await client.complete(PROMPT, PAR)


async def test_a_completion_can_be_denied_by_what_it_is_about() -> None:
    rule = {"tools": ["suite.complete"], "action": "deny", "when": {"name": "test_*"}}
    bound = {"suite.complete.tenant": "acme"}
    async with suite({"rules": [rule], "bound": bound}) as client:
        with pytest.raises(MCPError, match="denied by policy"):
            await client.complete(PROMPT, PAR)
        assert (await client.complete(TEMPLATE, PAR)).completion.values
        with pytest.raises(MCPError, match="tenant is set by the host"):
            await client.complete(TEMPLATE, {"name": "Tenant", "value": "other"})


async def test_both_values_of_a_completion_that_names_one_twice_are_looked_at() -> None:
    rule = {"tools": ["suite.complete"], "action": "deny", "when": {"arguments.arg1": "bad*"}}
    async with suite({"rules": [rule]}) as client:
        for value, known in (("good", "bad"), ("bad", "good")):
            with pytest.raises(MCPError, match="denied by policy"):
                await client.complete(PROMPT, {"name": "arg1", "value": value}, {"arg1": known})


class Restoring(OpenBorder):
    """A border behind which some names are others. What goes out stays as it is."""

    async def inward(
        self, value: Any, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Any:
        return with_texts(value, lambda text: text.replace("token", "person"))


async def test_a_completion_has_the_name_that_the_border_restores() -> None:
    servers = {"bird": _entry("canary", direct=["*"])}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, border=Restoring()) as bell:
        surface, ref = Surface(bell), types.PromptReference(name="plan")
        asked = {"name": "token", "value": "of token"}
        async with Client(surface.server, cache=None) as client:
            for known in (None, {"other": "x"}, {"token": "before", "other": "x"}):
                found = (await client.complete(ref, asked, known)).completion.values
                assert json.loads(found[-1]) == {"name": "person", "value": "of person"}
            with pytest.raises(MCPError, match="two arguments have the same name"):
                await client.complete(ref, asked, {"person": "x", "other": "x"})
        await surface.close()


async def test_lists_have_rules_and_a_budget(era: Era) -> None:
    rules = [{"tools": ["suite.list_prompts"], "action": "deny"}]
    async with suite({"rules": rules, "calls_per_session": 3}, era) as client:
        assert (await client.list_prompts()).prompts == []
        assert (await client.list_resources()).resources
        assert len((await client.list_resource_templates()).resource_templates) == 2
        for ask in (client.list_prompts, client.list_resources, client.list_resource_templates):
            with pytest.raises(MCPError, match="all 3 calls are used"):
                await ask()


async def test_a_person_is_asked_about_lists_where_the_protocol_has_a_way(
    era: Era, listener: Listener
) -> None:
    rules = [{"tools": ["suite.list_resources"], "action": "ask"}]
    options = {key: value for key, value in listener.options().items() if key != "cache"}
    async with suite({"rules": rules}, era, **options) as client:
        found = (await client.list_resources()).resources
        # In the newer era a list can't be answered with a question: nobody can be asked.
        assert (found != []) is (len(listener.asked) == 1) is (era == "legacy")
        listener.answer = types.ElicitResult(action="decline")
        assert (await client.list_resources()).resources == []


async def test_a_bound_argument_can_not_be_given_to_a_prompt() -> None:
    async with suite({"bound": {"suite.*.arg2": "{user}"}}) as client:
        with pytest.raises(MCPError, match="arg2 is set by the host"):
            await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "ARG2": "b"})


async def test_a_client_has_as_many_calls_at_once_as_a_session() -> None:
    servers = {"shop": _entry("workshop", direct=["*"])}
    policy = {"calls_at_once": 2}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, policy=policy) as bell:
        contexts, people = (
            CallContexts(bell.gateway, 60),
            [ClientChannel(Principal(name, "")) for name in "ab"],
        )
        async with contexts.begin(people[0]), contexts.begin(people[0]), contexts.begin(people[1]):
            third = asyncio.ensure_future(contexts.begin(people[0]).__aenter__())
            await asyncio.sleep(0)
            assert not third.done(), "the third of one client waits, that of another does not"
        assert (await third).user == "a"


async def test_no_server_can_list_a_resource_of_another_as_its_own() -> None:
    both = {name: _entry("conformance", direct=["*"]) for name in ("evil", "good")}
    rule = {"tools": ["evil.read_resource", "evil.complete"], "action": "deny", "reason": "evil"}
    async with Divingbell(pool=0, mode="hybrid", servers=both, policy={"rules": [rule]}) as bell:
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            listed = [one.uri for one in (await client.list_resources()).resources]
            for name in both:
                assert f"divingbell://servers/{name}/test://static-text" in listed
            uri = "divingbell://servers/good/test://static-text"
            [content] = (await client.read_resource(uri)).contents
            assert content.uri == uri
            for bad in (
                uri.replace("good", "evil"), "test://static-text", uri.replace("good", "none"),
                "divingbell://servers/good", "divingbell://servers//x",
            ):  # fmt: skip
                with pytest.raises(MCPError):
                    await client.read_resource(bad)
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates][1:] == [
                f"divingbell://servers/{name}/test://template/{{id}}/data" for name in both
            ]
            made = "divingbell://servers/good/test://template/7/data"
            assert (await client.read_resource(made)).contents[0].uri == made
            for name, words in (("good", None), ("evil", "evil")):
                ref = types.ResourceTemplateReference(
                    uri=f"divingbell://servers/{name}/test://template/{{id}}/data"
                )
                if words is None:
                    assert (await client.complete(ref, PAR)).completion.values
                else:
                    with pytest.raises(MCPError, match=words):
                        await client.complete(ref, PAR)
            result = await client.call_tool("good__test_embedded_resource", {})
            [block] = result.content
            assert isinstance(block, types.EmbeddedResource)
            assert block.resource.uri == "divingbell://servers/good/test://embedded-resource"
        await surface.close()


@pytest.mark.parametrize("mode", ["hybrid", "direct"])
async def test_nothing_is_called_without_code_while_the_log_can_t_be_written(
    mode: Literal["hybrid", "direct"], tmp_path: Path
) -> None:
    places = {name: f"{tmp_path}/{place}" for name, place in PLACES.items()}
    kept: Any = {"audit": "on", "audit_log": places, "preload": ()}
    servers = {"galley": _entry("galley", direct=["*"])}
    async with Divingbell(pool=0, mode=mode, servers=servers, **kept) as bell:
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            assert text_of(await client.call_tool("count", {})) == "1"
            with full(tmp_path):
                refused = await client.call_tool("count", {})
                assert refused.is_error and "the audit log can't be written" in text_of(refused)
                assert str(tmp_path) not in text_of(refused)
                for ask in (
                    client.read_resource("notes://today"),
                    client.get_prompt("plan", {"topic": "diving"}),
                ):
                    with pytest.raises(MCPError, match="the audit log can't be written"):
                        await ask
            assert text_of(await client.call_tool("count", {})) == "2"
        await surface.close()
    started = [one["tool"] for one in making.records(tmp_path) if one["kind"] == "call.started"]
    assert started == ["galley.count"] * 2
