"""Rules about kinds of values hold for values that code has as tokens, whatever it does."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell import Approval, ConfigError, Divingbell, Session, ToolFailed
from divingbell.journal.events import CallDecided

ANN = "ann.leeson@harbour.example.org"
PHONE = "+49 30 901820"
KEY = "sk-proj-" + "Tq8vXz2Lm4Rw9Kp3Hs7Yd1Fg6Jc5Nb0VaQeUiOtP" * 2
RULES = {"border": {"host.find*": "sandbox", "host.boom": "sandbox"}}
POLICY = {
    "flow": [
        {"from": ["host.find_other"], "to": "host.post", "action": "deny"},
        {
            "from": ["host.find", "host.boom"],
            "to": ["host.*", "!host.update", "!host.echo", "!host.shout", "!host.ask"],
            "action": "deny",
            "kinds": ["email", "secrets"],
            "reason": "customers stay in the CRM",
        },
        {"from": "host.find", "to": "host.ask", "action": "ask", "kinds": "personal"},
    ]
}


class Office:
    """Tools that return people, and tools that get them."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def tools(self) -> list[Any]:
        def find() -> dict[str, Any]:
            return {"email": ANN, "phone": PHONE, "note": "nothing", "key": KEY}

        def boom() -> str:
            raise ToolFailed(f"nobody but {ANN} may do that")

        def take(text: str) -> str:
            self.got.append(text)
            return "done"

        def post(text: Any) -> str:
            return take(str(text))

        def update(text: str) -> str:
            return take(text)

        def ask(text: str) -> str:
            return take(text)

        def echo(text: str) -> str:
            return text

        def shout(text: str) -> str:
            return text.upper()

        return [find, boom, post, update, ask, echo, shout]


class Person:
    """The one who is asked."""

    def __init__(self) -> None:
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> bool:
        self.asked.append(approval)
        return True


@pytest.fixture(scope="module")
def office() -> Office:
    return Office()


@pytest.fixture(scope="module")
def person() -> Person:
    return Person()


@pytest.fixture(scope="module")
async def house(
    anyio_backend: str,
    office: Office,
    person: Person,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(
            pool=0,
            preload=[],
            privacy="personal",
            privacy_rules=RULES,
            policy=POLICY,
            on_approval=person,
            tools=office.tools(),
        ) as bell:
            yield bell


@pytest.fixture
async def session(house: Divingbell, office: Office, person: Person) -> AsyncIterator[Session]:
    office.got.clear()
    person.asked.clear()
    async with house.session() as session:
        await session.run("from servers import host\nrow = host.find()")
        yield session


async def refusal(session: Session, code: str) -> str:
    result = await session.run(code)
    assert result.error is not None, result
    return result.error.message


async def test_a_value_goes_back_and_nowhere_else_and_others_go_anywhere(
    session: Session, office: Office
) -> None:
    await session.run("host.update(row['email']); host.post(row['phone'] + row['note'])")
    assert office.got == [ANN, f"{PHONE}nothing"]
    told = await refusal(session, "host.post('to ' + row['email'])")
    assert "host.post is denied by policy: [EMAIL_" in told and ANN not in told
    assert "came from host.find, and flow rule 2 keeps email, secrets from there" in told
    assert "(customers stay in the CRM)" in told
    assert len(office.got) == 2


@pytest.mark.parametrize(
    "code",
    [
        "''.join(list(row['email']))",
        "row['email'][:5] + row['email'][5:]",
        "{'a': [{row['email']: 1}]}",
        "'x' * 1000 + row['email']",
        "__import__('base64').b64decode(__import__('base64').b64encode(row['email'].encode()))"
        ".decode()",
        "host.echo(row['email'])",
        "host.echo('<' + row['email'] + '>')",
        "host.shout(row['email'])",
        "row['key']",
    ],
)
async def test_no_detour_takes_a_value_elsewhere(
    session: Session, office: Office, code: str
) -> None:
    assert "is denied by policy" in await refusal(session, f"host.post({code})")
    assert office.got == []


@pytest.mark.parametrize(
    "code",
    [
        "row['email'][::-1]",
        "row['email'][1:-1]",
        "__import__('base64').b64encode(row['email'].encode()).decode()",
        "' '.join(row['email'])",
        "host.echo(row['email'][::-1])",
    ],
)
async def test_what_code_makes_of_a_token_is_text(
    session: Session, office: Office, code: str
) -> None:
    result = await session.run(f"host.post({code})")
    assert result.status == "ok", result.error
    [got] = office.got
    assert ANN not in (got, got[::-1]) and "harbour" not in got.lower()


async def test_a_token_in_other_letters_is_refused_rather_than_sent(
    session: Session, office: Office
) -> None:
    result = await session.run("host.post(row['email'].lower())")
    assert result.error is not None and "letter by letter" in result.error.message
    assert office.got == []


async def test_errors_of_a_tool_are_behind_the_border_too(session: Session) -> None:
    code = "try:\n    host.boom()\nexcept Exception as error:\n    words = str(error)\nwords"
    result = await session.run(f"{code}.startswith('nobody but [EMAIL_')")
    assert result.value is True
    assert "came from host.boom" in await refusal(session, "host.post(words)")


async def test_commands_get_no_value_that_code_may_not_have(session: Session) -> None:
    token = (await session.run("row['email']")).value
    assert isinstance(token, str)
    counted = await session.command(
        ["sh", "-c", 'printf %s "$0" | wc -c; wc -c', token], input=token
    )
    assert counted.stdout.split() == [str(len(token))] * 2


async def test_a_person_is_asked_and_told_what_it_is_about(
    session: Session, office: Office, person: Person
) -> None:
    await session.run("host.ask(row['note'])")
    assert office.got == ["nothing"] and not person.asked
    await session.run("host.ask(row['phone'])")
    [asked] = person.asked
    assert asked.reason == "It holds a value (phone) that came from host.find (flow rule 3)."
    assert asked.flows == (3,) and PHONE in asked.arguments
    assert office.got[-1] == PHONE


async def test_the_journal_tells_rule_and_source(house: Divingbell, session: Session) -> None:
    heard: list[Any] = []
    stop = house.journal.watch(heard.append)
    await refusal(session, "host.post(row['email'])")
    stop()
    [decided] = [event for event in heard if isinstance(event, CallDecided)]
    assert (decided.action, decided.flow, decided.source) == ("deny", 2, "host.find")
    assert ANN not in str(decided)


async def test_a_hundred_values_in_one_call(session: Session, office: Office) -> None:
    code = "host.post({row['phone']: [row['phone']] * 100, 'deep': [[[[row['phone']]]]]})"
    await session.run(code)
    assert office.got[-1].count(PHONE) == 102


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"privacy": "off"}, r'flow 1 is about email, and with privacy = "off" nobody looks'),
        ({"privacy": "secrets"}, r'write privacy = "personal"'),
    ],
)
async def test_a_rule_about_what_nobody_looks_for_is_refused(
    options: dict[str, Any], words: str
) -> None:
    policy = {"flow": [{"from": "a.*", "to": "b.*", "action": "deny", "kinds": "email"}]}
    rules = {"border": {"a.*": "sandbox"}}
    with pytest.raises(ConfigError, match=words):
        async with Divingbell(pool=0, preload=[], policy=policy, privacy_rules=rules, **options):
            raise AssertionError("it has started")
