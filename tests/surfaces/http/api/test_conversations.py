"""Conversations over HTTP, with a scripted model; everything around it is real."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import httpx2
import pytest
from mcp_types import ElicitRequestFormParams

from divingbell import Divingbell
from divingbell.agent.agent import Agent
from divingbell.agent.history import Call
from divingbell.agent.scripted import Says
from divingbell.errors import ConfigError
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import conversations
from divingbell.surfaces.http.conversation import Conversation
from divingbell.surfaces.http.conversations import MOST_OF_USER
from tests import real_servers
from tests.surfaces.http.serving import ANNE, BERT, Heard, Site, Talking, heard, known, served
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.anyio
API = "/api/v1/conversations"
SLOW = Says("Looking.", "import time; print('on'); time.sleep(30)")


@pytest.fixture(scope="module")
def script() -> Talking:
    return Talking()


@pytest.fixture(scope="module")
async def site(bell: Divingbell, script: Talking) -> AsyncIterator[Site]:
    async with served(bell, known(), script.made) as site:
        yield site
    await bell.owned.leave_all()


@pytest.fixture
async def talk(anne: httpx2.AsyncClient, script: Talking) -> AsyncIterator[str]:
    """The address of a conversation."""
    script.lines.clear()
    made = await anne.post(API, json={})
    assert made.status_code == 201, made.text
    yield f"{API}/{made.json()['id']}"
    await anne.delete(f"{API}/{made.json()['id']}")


async def said(client: httpx2.AsyncClient, talk: str, text: str) -> list[Heard]:
    path = f"{talk}/messages"
    async with client.stream("POST", path, json={"text": text}) as answer:
        assert answer.status_code == 200
        return [each async for each in heard(answer)]


async def test_an_answer_is_told_event_by_event(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    script.lines += [Says("Let me see.", "print('deep'); 6 * 7"), Says("It is 42.")]
    found = await said(anne, talk, "How much is it?")
    names = [each.name for each in found]
    assert names[0] == "asked" and names[-1] == "done"
    assert {"text", "code_written", "cell_started", "cell_event", "cell_ended", "usage_told"} <= {
        *names
    }
    by_name: dict[str, Any] = {each.name: each.data for each in found}
    assert by_name["cell_started"]["code"] == "print('deep'); 6 * 7"
    assert by_name["cell_ended"]["result"]["output"] == "deep\n42\n"
    assert by_name["done"]["text"] == "It is 42." and by_name["done"]["reason"] == "answered"
    events = [each.data["event"] for each in found if each.name == "cell_event"]
    assert {"type": "stdout", "text": "deep\n"} in events
    assert [each.number for each in found] == list(range(1, len(found) + 1))


async def test_what_else_an_agent_does_is_told_as_well(script: Talking) -> None:
    """Thoughts, calls of its own, helpers, and what it was not the model who said."""
    command, arguments = real_servers.fixture("workshop")
    script.lines[:] = [
        Says("", calls=(Call("id_1", "shop__echo", '{"text": "loud"}'),), thinking="Let me hear."),
        Says(calls=(Call("id_2", "nowhere", "{}"),)),
        Says(code="print(delegate('Say it.'))"),
        Says("It is 7."),  # the helper's
        Says("Seven."),
    ]
    async with (
        Divingbell(pool=0, servers={"shop": {"command": command, "args": arguments}}) as bell,
        served(bell, make_model=script.made) as site,
        site.client() as anne,
    ):
        await bell.gateway.fleet.wait_for_tools("shop")
        made = await anne.post(API, json={"mode": "hybrid"})
        found = await said(anne, f"{API}/{made.json()['id']}", "How much?")
    by_name: dict[str, Any] = {each.name: each.data for each in found}
    assert "".join(each.data["text"] for each in found if each.name == "thinking") == "Let me hear."
    call = {"call": "id_1", "name": "shop__echo"}
    assert by_name["tool_started"] == call | {"arguments": '{"text": "loud"}'}
    assert by_name["tool_ended"] == call | {"text": "loud", "failed": False}
    assert "nowhere" in by_name["notice"]["text"]
    assert by_name["helper_started"]["task"] == by_name["helper_ended"]["task"] == "Say it."
    assert by_name["helper_ended"]["outcome"] == "answered"
    assert by_name["cell_ended"]["result"]["output"] == "It is 7.\n"
    assert found[-1].name == "done" and found[-1].data["text"] == "Seven."


async def test_conversations_are_listed_in_parts(anne: httpx2.AsyncClient) -> None:
    made = [(await anne.post(API, json={})).json()["id"] for _ in range(3)]
    whole = (await anne.get(API)).json()
    first = (await anne.get(API, params={"limit": "2"})).json()
    cursor = {"limit": "2", "cursor": first["next"]}
    second = (await anne.get(API, params=cursor)).json()
    assert [each["id"] for each in whole["items"]][:3] == made[::-1] and whole["next"] is None
    assert first["items"] + second["items"] == whole["items"][:4]
    for each in made:
        await anne.delete(f"{API}/{each}")
    assert (await anne.get(API, params=cursor)).status_code == 409


async def test_a_conversation_goes_on_and_its_session_keeps_variables(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    script.lines += [Says(code="depth = 40"), Says("Noted."), Says(code="depth + 2"), Says("42.")]
    first = await said(anne, talk, "Remember 40.")
    second = await said(anne, talk, "Add two.")
    assert second[0].number == first[-1].number + 1
    [ended] = [each.data for each in second if each.name == "cell_ended"]
    assert ended["result"]["value"] == 42
    assert "Remember 40." in str(script.model.requests[-1])
    described = (await anne.get(talk)).json()
    assert described["state"] == "idle" and described["title"] == "Remember 40."
    assert described["last_event"] == second[-1].number


async def test_events_are_followed_again_after_any_of_them(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    script.lines += [Says("Deep.")]
    found = await said(anne, talk, "How deep?")
    async with anne.stream("GET", f"{talk}/events", headers={"Last-Event-ID": "1"}) as answer:
        again = [each async for each in heard(answer)]
    assert again == found[1:]
    async with anne.stream("GET", f"{talk}/events?after={found[-1].number}") as answer:
        assert [each async for each in heard(answer)] == []
    assert (await anne.get(f"{talk}/events?after=9999")).status_code == 422


async def test_an_answer_goes_on_when_its_reader_leaves_and_is_cancelled_when_asked_to(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    script.lines += [SLOW]
    async with anne.stream("POST", f"{talk}/messages", json={"text": "Look."}) as answer:
        async for each in heard(answer):
            if each.name == "cell_event":
                break
    assert (await anne.get(talk)).json()["state"] == "answering"
    busy = await anne.post(f"{talk}/messages", json={"text": "And?"})
    assert (busy.status_code, busy.json()["code"]) == (409, "conversation_busy")
    assert (await anne.post(f"{talk}/cancel")).json() == {"cancelled": True}
    assert (await anne.post(f"{talk}/cancel")).json() == {"cancelled": False}
    async with anne.stream("GET", f"{talk}/events") as answer:
        found = [each async for each in heard(answer)]
    assert found[-1].name == "cancelled"
    script.lines += [Says("Back again.")]
    assert (await said(anne, talk, "Well?"))[-1].data["text"] == "Back again."


async def test_an_answer_that_is_cancelled_before_it_begins_has_its_end() -> None:
    async def open_agent(conversation: Conversation) -> Agent:
        raise AssertionError("it has not begun")

    conversation = Conversation("anne", "one", None, owns_session=True)
    for _ in range(2):
        after = conversation.begin("Look.", open_agent)
        assert await conversation.cancel()
        assert conversation.state == "idle"
        found = [each.name async for each in conversation.follow(after) if each]
        assert found == ["asked", "cancelled"]


async def test_a_model_that_fails_is_told_at_the_end(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    def fails(request: object) -> Says:
        raise ConfigError("the key is wrong")

    script.lines += [fails]
    found = await said(anne, talk, "Anybody?")
    assert found[-1].name == "failed"
    assert found[-1].data == {"code": "config", "detail": "the key is wrong"}
    assert (await anne.get(talk)).json()["state"] == "idle"


async def test_a_session_that_has_ended_is_replaced_and_the_conversation_goes_on(
    anne: httpx2.AsyncClient, talk: str, script: Talking
) -> None:
    script.lines += [Says(code="depth = 40"), Says("Noted.")]
    await said(anne, talk, "Remember 40.")
    session = (await anne.get(talk)).json()["session"]
    assert (await anne.delete(f"/api/v1/sessions/{session}")).status_code == 204
    script.lines += [Says(code="'depth' in globals()"), Says("Gone.")]
    found = await said(anne, talk, "Is it there?")
    [ended] = [each.data for each in found if each.name == "cell_ended"]
    assert ended["result"]["value"] is False
    assert "Remember 40." in str(script.model.requests[-1])


async def test_a_conversation_works_in_a_session_that_is_named_and_leaves_it_open(
    anne: httpx2.AsyncClient, script: Talking
) -> None:
    await anne.post("/api/v1/sessions/shared/execute", json={"code": "depth = 40"})
    made = (await anne.post(API, json={"session": "shared"})).json()
    script.lines[:] = [Says(code="depth"), Says("40.")]
    found = await said(anne, f"{API}/{made['id']}", "How deep?")
    assert [each.data["result"]["value"] for each in found if each.name == "cell_ended"] == [40]
    assert (await anne.delete(f"{API}/{made['id']}")).status_code == 204
    assert (await anne.get("/api/v1/sessions/shared")).status_code == 200


async def test_deleting_one_ends_its_session(anne: httpx2.AsyncClient, script: Talking) -> None:
    made = (await anne.post(API, json={})).json()
    script.lines[:] = [Says(code="1"), Says("One.")]
    await said(anne, f"{API}/{made['id']}", "One?")
    assert (await anne.delete(f"{API}/{made['id']}")).status_code == 204
    assert (await anne.get(f"{API}/{made['id']}")).status_code == 404
    assert (await anne.get(f"/api/v1/sessions/{made['session']}")).status_code == 404


async def test_nobody_sees_or_answers_what_is_anothers(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient, talk: str
) -> None:
    assert (await bert.get(API)).json()["items"] == []
    assert talk.endswith((await anne.get(API)).json()["items"][0]["id"])
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("GET", "/events", None),
        ("POST", "/messages", {"text": "hello"}),
        ("POST", "/cancel", None),
        ("POST", "/answer", {"id": "q-1", "action": "accept"}),
        ("DELETE", "", None),
    ]
    for method, path, body in requests:
        answer = await bert.request(method, talk + path, json=body)
        assert answer.status_code == 404, path
    text = {"text": "[EMAIL_000001]", "conversation": talk.rpartition("/")[2]}
    assert (await bert.post("/api/v1/reveal", json=text)).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"model": "openai:gpt"},
        {"base_url": "http://evil.example"},
        {"key": "x"},
        {"mode": "other"},
        {"session": "../x"},
        [],
    ],
)
async def test_a_client_names_neither_model_nor_address_nor_key(
    anne: httpx2.AsyncClient, body: Any
) -> None:
    assert (await anne.post(API, json=body)).status_code == 400


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": 1}, {"text": "x" * ((1 << 20) + 1)}])
async def test_a_message_that_is_none_is_refused(
    anne: httpx2.AsyncClient, talk: str, body: Any
) -> None:
    assert (await anne.post(f"{talk}/messages", json=body)).status_code == 400


async def test_a_user_has_so_many_conversations_and_no_more(bert: httpx2.AsyncClient) -> None:
    made = [await bert.post(API, json={}) for _ in range(MOST_OF_USER)]
    assert {each.status_code for each in made} == {201}
    assert (await bert.post(API, json={})).status_code == 429
    for each in made:
        await bert.delete(f"{API}/{each.json()['id']}")


class Recorded(Conversation):
    """A conversation that the test can reach, to ask as a server would."""

    made: ClassVar[list[Conversation]] = []

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.made.append(self)


QUESTION = ElicitRequestFormParams(
    message="How deep?",
    requested_schema={"type": "object", "properties": {"depth": {"type": "integer"}}},
)


async def test_a_question_waits_for_the_persons_answer(
    anne: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "Conversation", Recorded)
    talk = f"{API}/{(await anne.post(API, json={})).json()['id']}"
    asking = asyncio.create_task(Recorded.made[-1].elicit(QUESTION))
    await until(lambda: Recorded.made[-1].log.last, "the question is told")
    async with anne.stream("GET", f"{talk}/events") as answer:
        [told] = [each async for each in heard(answer)]
    assert told.name == "question" and told.data["asked"]["message"] == "How deep?"
    given = {"id": told.data["id"], "action": "accept", "content": {"depth": 40}}
    assert (await anne.post(f"{talk}/answer", json=given | {"id": "q-0"})).status_code == 404
    assert (await anne.post(f"{talk}/answer", json=given | {"action": "x"})).status_code == 400
    assert (await anne.post(f"{talk}/answer", json=given)).status_code == 204
    result = await asyncio.wait_for(asking, PATIENCE)
    assert (result.action, result.content) == ("accept", {"depth": 40})
    assert (await anne.post(f"{talk}/answer", json=given)).status_code == 404


async def test_who_may_not_approve_neither_sees_nor_answers_what_a_call_has_in_it(
    bell: Divingbell, script: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "Conversation", Recorded)
    tokens = Tokens({"anne": hash_of(ANNE)}, frozenset({"run"}))
    async with served(bell, tokens, script.made) as site, site.client(ANNE) as client:
        talk = f"{API}/{(await client.post(API, json={})).json()['id']}"
        asking = asyncio.create_task(Recorded.made[-1].approve(QUESTION))
        await until(lambda: Recorded.made[-1].log.last, "the question is told")
        async with client.stream("GET", f"{talk}/events") as answer:
            [told] = [each async for each in heard(answer)]
        assert (told.name, told.data["asked"]) == ("approval", None)
        given = {"id": told.data["id"], "action": "accept"}
        assert (await client.post(f"{talk}/answer", json=given)).status_code == 403
        asking.cancel()
        await asyncio.wait([asking])
    assert Recorded.made[-1].log.last == 2


async def test_reveal_takes_its_own_scope_and_a_place(bell: Divingbell, script: Talking) -> None:
    tokens = Tokens({"anne": hash_of(ANNE), "bert": hash_of(BERT)})
    async with served(bell, tokens, script.made) as site, site.client(ANNE) as client:
        body = {"text": "[EMAIL_000001]", "session": "one"}
        assert (await client.post("/api/v1/reveal", json=body)).status_code == 403


async def test_reveal_gives_a_text_of_ones_own_session(anne: httpx2.AsyncClient) -> None:
    await anne.post("/api/v1/sessions/mine/execute", json={"code": "1"})
    body = {"text": "nothing hidden", "session": "mine"}
    assert (await anne.post("/api/v1/reveal", json=body)).json() == {"text": "nothing hidden"}
    for wrong in ({"text": "x"}, {"text": "x", "session": "mine", "conversation": "c-1"}):
        assert (await anne.post("/api/v1/reveal", json=wrong)).status_code == 422
    none = {"text": "x", "session": "of-nobody"}
    assert (await anne.post("/api/v1/reveal", json=none)).status_code == 404


async def test_reveal_gives_the_value_of_a_token_of_ones_own_alone(script: Talking) -> None:
    address = "ann@example-firm.com"
    async with (
        Divingbell(pool=0, preload=[], privacy="personal") as bell,
        served(bell, make_model=script.made) as site,
        site.client(ANNE) as anne,
        site.client(BERT) as bert,
    ):
        code = {"code": f"print('to {address}')"}
        ran = (await anne.post("/api/v1/sessions/mine/execute", json=code)).json()
        shown = ran["output"].splitlines()[0]
        assert shown.startswith("to [EMAIL_") and address not in shown
        talk = (await anne.post(API, json={"session": "mine"})).json()["id"]
        for place in ({"session": "mine"}, {"conversation": talk}):
            told = await anne.post("/api/v1/reveal", json={"text": shown} | place)
            assert told.json() == {"text": f"to {address}"}
        for client, name in ((anne, "other"), (bert, "mine")):
            await client.post(f"/api/v1/sessions/{name}/execute", json={"code": "1"})
            told = await client.post("/api/v1/reveal", json={"text": shown, "session": name})
            assert told.json() == {"text": shown}, "a token of another conversation is a text"


async def test_without_a_model_it_says_what_to_do(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with served(bell) as site, site.client(ANNE) as client:
        refused = await client.post(API, json={})
        assert (refused.status_code, refused.json()["code"]) == (422, "config")
        assert "No model is set up" in refused.json()["detail"]
        assert (await client.get("/api/v1/me")).json()["features"]["conversations"] is False


async def test_me_says_that_there_is_a_model(anne: httpx2.AsyncClient) -> None:
    assert (await anne.get("/api/v1/me")).json()["features"]["conversations"] is True
