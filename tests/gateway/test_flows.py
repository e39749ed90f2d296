"""Rules about flows hold whatever the code does between the one call and the other."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell import Approval, Divingbell, Session, SessionClosed
from divingbell.journal.events import CallDecided
from tests.gateway.galley import ENTRY
from tests.waiting import until

POLICY = {
    "flow": [
        {
            "from": ["crm.*", "!crm.add", "!crm.counted"],
            "to": ["slack.*", "!slack.counted"],
            "action": "deny",
            "reason": "customers stay here",
        },
        {"from": "host.*", "to": "fetch.echo", "action": "ask", "reason": "look at it"},
        {"from": "host.*", "to": "fetch.add", "action": "deny", "users": "ben"},
        {"from": "crm.*", "to": "fetch.echo", "action": "ask"},
    ],
    "rules": [
        {"tools": "fetch.count", "action": "deny"},
        {"tools": "fetch.echo", "action": "ask", "when": {"text": "rule*"}},
    ],
}
POST = "from servers import slack\nslack.echo('posted')"
DENIED = "slack.echo is denied by policy: this conversation has data of crm."


class Person:
    """The one who is asked."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []
        self.word = "yes"

    async def __call__(self, approval: Approval) -> str:
        self.asked.append(approval)
        return self.word


@pytest.fixture(scope="module")
def person() -> Person:
    return Person()


def secret() -> str:
    """Something that the program knows."""
    return "42"


@pytest.fixture(scope="module")
async def house(person: Person) -> AsyncIterator[Divingbell]:
    servers = dict.fromkeys(("crm", "slack", "fetch", "gone"), ENTRY)
    async with Divingbell(
        pool=0,
        preload=[],
        search="words",
        copy_after=0.05,
        servers=servers,
        policy=POLICY,
        on_approval=person,
        tools=[secret],
    ) as bell:
        for name in servers:
            await bell.gateway.fleet.wait_until_ready(name)
        yield bell


@pytest.fixture
async def talk(house: Divingbell, person: Person) -> AsyncIterator[Session]:
    person.asked.clear()
    person.word = "yes"
    async with house.session(user="ann") as session:
        yield session


async def run(session: Session, code: str) -> Any:
    result = await session.run(code)
    assert result.status == "ok", result.error
    return result.value


async def post(session: Session, code: str = POST) -> str:
    """Post something; return "posted", or why it was not."""
    result = await session.run(code)
    return str(result.error or result.value)


async def is_held_back(session: Session) -> bool:
    said = await post(session)
    assert said == "posted" or DENIED in said, said
    return said != "posted"


READ = "from servers import crm\nkept = crm.echo('ada')"


async def test_what_was_read_is_not_sent_and_the_error_says_why_and_what_to_do(
    talk: Session,
) -> None:
    assert not await is_held_back(talk)
    await run(talk, READ)
    result = await talk.run(POST)
    assert result.error is not None and result.error.message == (
        "slack.echo is denied by policy: this conversation has data of crm.echo (called in cell "
        "2), and flow rule 1 keeps it from there (customers stay here). It holds whatever the "
        "arguments are, and until the conversation ends: go on without this call, and tell the "
        "person"
    )
    assert [(call.name, call.status) for call in result.calls] == [("slack.echo", "tool_denied")]
    assert await run(talk, "servers.slack.counted('x')") == 0, "`!` takes it away"


async def test_another_conversation_of_the_same_user_is_not_concerned(
    house: Divingbell, talk: Session
) -> None:
    await run(talk, READ)
    async with house.session(user="ann") as other:
        assert not await is_held_back(other)
    async with house.session(talk.id, user="ann") as same:
        assert await is_held_back(same)


@pytest.mark.parametrize(
    "code",
    [
        "servers.crm.echo('ada')",
        "call_mcp_tool('crm.echo', {'text': 'ada'})",
        "try: servers.crm.fail('the secret')\nexcept ToolError: pass",
        "servers.crm.read_resource('notes://today')",
        "try: servers.crm.read_resource('notes://none')\nexcept ToolError: pass",
        "servers.crm.resources()",
        "servers.crm.prompts()",
        "servers.crm.get_prompt('plan', topic='x')",
        "call_mcp_tool('crm.open', {'kind': 'x'})",
        "call_mcp_tool('crm.big', {'megabytes': 0.01})",
        "import threading\nt = threading.Thread(target=lambda: servers.crm.echo('x'))\n"
        "t.start(); t.join()",
    ],
)
async def test_whatever_brings_something_back_is_a_source(talk: Session, code: str) -> None:
    await run(talk, code)
    assert await is_held_back(talk)


@pytest.mark.parametrize(
    "code",
    [
        "search_tools('echo', detail_level='full')",
        "list_mcp_tools('crm')",
        "get_mcp_tool_details('crm.echo')",
        "from servers.crm import echo\nhelp(echo)",
        "servers.crm.add(1, 2)",
        "try: servers.crm.echo(7)\nexcept ToolError: pass",
        "try: call_mcp_tool('crm.none', {})\nexcept ToolError: pass",
    ],
)
async def test_descriptions_and_calls_that_are_not_made_are_none(talk: Session, code: str) -> None:
    await run(talk, code)
    assert not await is_held_back(talk)


async def test_the_tool_stays_where_it_is_found(talk: Session) -> None:
    await run(talk, READ)
    listed = await run(talk, "list_mcp_tools('slack')")
    assert "slack.echo" in listed
    assert await run(talk, "get_mcp_tool_details('slack.echo')['name']") == "slack.echo"
    assert "post" not in str(await run(talk, "from servers.slack import echo"))


async def test_a_reset_a_kill_and_a_new_interpreter_forget_nothing(talk: Session) -> None:
    await run(talk, READ)
    await talk.reset()
    assert await is_held_back(talk)
    lost = await talk.run("import os; os.kill(os.getpid(), 9)")
    assert lost.status == "killed"
    assert await is_held_back(talk)


async def test_a_rewind_does_not_lead_back_before_the_label(talk: Session) -> None:
    await run(talk, "before = 1")
    await until(lambda: talk._handle.copied_cell == 1, "a copy of the interpreter")
    lost = await talk.run(
        f"{READ}\nimport os\nopen('kept', 'w').write(kept)\nos.kill(os.getpid(), 9)"
    )
    assert lost.status == "killed" and lost.state == "rewound"
    assert await run(talk, "before") == 1
    assert await is_held_back(talk)


RACE = """
import asyncio
from servers import crm, slack

async def post():
    before = await crm.counted('asleep')
    slow = asyncio.ensure_future(crm.sleep(60))
    while await crm.counted('asleep') == before:
        await asyncio.sleep(0.01)
    try:
        return await slack.echo('posted')
    except ToolError as error:
        return str(error)
    finally:
        slow.cancel()

await post()
"""


async def test_of_calls_at_the_same_time_none_wins_the_race(talk: Session) -> None:
    """The first server has its call, and has not answered yet."""
    assert DENIED in await run(talk, RACE)
    assert await is_held_back(talk), "the call was cancelled after it was sent"


async def test_a_call_that_was_sent_when_its_cell_ended_counts(talk: Session) -> None:
    await run(
        talk, "import threading; threading.Thread(target=servers.crm.sleep, args=[0.5]).start()"
    )
    await until(lambda: is_held_back(talk), "the call leaves")
    assert await is_held_back(talk)


async def test_hundreds_of_calls_at_once_find_no_gap(talk: Session) -> None:
    """Whatever was sent to the second server was asked for before the first one had anything."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from servers import crm, slack\n"
        "got = []\n"
        "def one(number):\n"
        "    if number == 20: got.append(crm.echo('the secret'))\n"
        "    known = list(got)\n"
        "    try: slack.echo(str(known)); return known\n"
        "    except ToolError: return []\n"
        "with ThreadPoolExecutor(20) as pool: sent = list(pool.map(one, range(200)))\n"
        "sum(map(bool, sent)), len(got)"
    )
    assert await run(talk, code) == (0, 1)


async def test_a_server_that_is_taken_away_and_one_of_another_name_change_nothing(
    house: Divingbell, talk: Session
) -> None:
    house.gateway.add("crm-copy", ENTRY)
    await run(talk, "servers.crm_copy.echo('x')")
    assert not await is_held_back(talk), "`crm.*` does not name it"
    await run(talk, READ)
    await house.gateway.remove("crm-copy")
    await house.gateway.remove("crm")
    try:
        assert await is_held_back(talk)
    finally:
        house.gateway.add("crm", ENTRY)
        await house.gateway.fleet.wait_until_ready("crm")
    assert await is_held_back(talk)


async def test_a_rule_about_flows_allows_nothing_that_a_rule_denies(talk: Session) -> None:
    await talk.set("x", 1)
    assert "denied by policy" in await post(talk, "call_mcp_tool('fetch.count', {})")


# What the program gives


async def give_function(session: Session) -> None:
    await run(session, "servers.host.secret()")


async def give_file(session: Session) -> None:
    await session.files.put("a.txt", "secret")


async def give_variable(session: Session) -> None:
    await session.set("x", "secret")


async def give_context(session: Session) -> None:
    await session.run("x", context={"x": "secret"})


async def give_input(session: Session) -> None:
    await session.command("cat > a.txt", input="secret")


FETCH = "servers.fetch.echo('posted')"


@pytest.mark.parametrize(
    "give", [give_function, give_file, give_variable, give_context, give_input]
)
async def test_what_the_program_gives_is_asked_about_each_time(
    talk: Session, person: Person, give: Any
) -> None:
    assert await post(talk, FETCH) == "posted" and not person.asked
    await give(talk)
    assert await post(talk, FETCH) == await post(talk, FETCH) == "posted"
    assert [asked.flows for asked in person.asked] == [(2,), (2,)]
    assert person.asked[0].reason.startswith("It may hold data of host.")
    assert person.asked[0].reason.endswith("which this conversation has (flow rule 2: look at it).")
    person.word = "no"
    assert "denied by the person" in await post(talk, FETCH)


async def test_a_rule_for_one_user_is_for_nobody_else(house: Divingbell, talk: Session) -> None:
    add = "servers.fetch.add(1, 2)"
    await talk.set("x", 1)
    assert await post(talk, add) == "3"
    async with house.session(user="ben") as other:
        assert await post(other, add) == "3"
        await other.set("x", 1)
        assert "flow rule 3 keeps it from there." in await post(other, add)


async def test_a_yes_to_all_is_for_the_rules_that_the_person_was_told_of(
    talk: Session, person: Person
) -> None:
    person.word = "session"
    assert await post(talk, "servers.fetch.echo('rule')") == "rule"
    await talk.set("x", 1)
    for _ in range(2):
        assert await post(talk, FETCH) == "posted"
        assert await post(talk, "servers.fetch.echo('rule')") == "rule"
    await run(talk, READ)
    for _ in range(2):
        assert await post(talk, FETCH) == "posted"
    told = [(asked.rule, asked.flows) for asked in person.asked]
    assert told == [(2, ()), (None, (2,)), (2, (2,)), (None, (2, 4))]


async def test_the_journal_says_which_rule_it_was_and_which_call_had_set_it_off(
    house: Divingbell, talk: Session
) -> None:
    told: list[Any] = []
    undo = house.journal.watch(told.append)
    await run(talk, READ)
    await talk.run(POST)
    await talk.run(FETCH)
    undo()
    decided = [
        (each.tool, each.action, each.rule, each.flow, each.source, each.reason)
        for each in told
        if isinstance(each, CallDecided)
    ]
    assert decided == [
        ("crm.echo", "allow", None, None, "", ""),
        ("slack.echo", "deny", None, 1, "crm.echo", "customers stay here"),
        ("fetch.echo", "ask", None, 4, "crm.echo", ""),
    ]


async def test_labels_end_with_their_session(house: Divingbell) -> None:
    before = len(house.gateway.labels)
    async with house.session() as session:
        await run(session, READ)
        assert len(house.gateway.labels) == before + 1
    with pytest.raises(SessionClosed):
        await session.set("x", 1)
    with pytest.raises(SessionClosed):
        await session.files.put("x", "1")
    assert len(house.gateway.labels) == before
