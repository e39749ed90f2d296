"""The border of `privacy`: what models read and write, what code and tools have."""

import asyncio
import json
import re
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from divingbell import Divingbell, Session, ToolFailed, UnknownToken
from divingbell.border.conversation import Conversation
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.events import Revealed
from divingbell.gateway.functions.function import HostFunction
from divingbell.principal import Principal

KEY = "sk-proj-" + "Tq8vXz2Lm4Rw9Kp3Hs7Yd1Fg6Jc5Nb0VaQeUiOtP" * 2
ROW = {
    "first_name": "Zelda",
    "last_name": "Sayrefitz",
    "email": "zelda@jazz.org",
    "street": "Rue de Lappe 17",
    "notes": "forward to [EMAIL_482715], call +49 30 901820",
    "key": KEY,
}
HIDDEN = ("Zelda", "Sayrefitz", "zelda@jazz.org", "Rue de Lappe", "901820", KEY)
NAME = "Zoë Quästenfloß-Ōe"
TOKEN = re.compile(r"\[[A-Z_]+_\d{6,}\]")


class Office:
    """Tools with people in what they return, and what they were called with."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.planted: dict[str, str] = {}

    def tools(self) -> list[Any]:
        def find(query: str) -> list[dict[str, str]]:
            return [ROW]

        def mail(to: str, text: str) -> str:
            self.sent.append((to, text))
            return f"sent to {to}"

        def fail(about: str) -> str:
            raise ToolFailed(f"nobody knows {about}")

        def planted() -> dict[str, str]:
            return self.planted

        return [find, mail, fail, planted]


@pytest.fixture(scope="module")
def office() -> Office:
    return Office()


@pytest.fixture(scope="module")
async def bell(
    anyio_backend: str, office: Office, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(privacy="personal", preload=["pandas"], tools=office.tools()) as bell:
            yield bell


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session


def hides_all(shown: object) -> bool:
    text = str(shown)
    return not [word for word in HIDDEN if word in text]


async def email_token(session: Session) -> str:
    result = await session.run("rows = servers.host.find('x')\nrows[0]['email']")
    assert isinstance(result.value, str) and TOKEN.fullmatch(result.value), result
    return result.value


@pytest.mark.parametrize(
    "code",
    [
        "print(rows)",
        "rows",
        "rows[0]['first_name'] + ' ' + rows[0]['last_name']",
        "import pandas; pandas.DataFrame(rows)",
        "import json; print(json.dumps(rows).upper().lower())",
        "import sys; print(repr(rows), file=sys.stderr)",
        "raise ValueError(rows)",
        "for letter in str(rows): print(letter, end='', flush=True)",
        "display(rows)",
        "display({'text/html': f'<b>{rows[0]}</b>', 'text/plain': 'x'}, raw=True)",
        "{rows[0]['email']: 1}",
        "servers.host.fail(rows[0]['email'])",
        "b'to ' + rows[0]['email'].encode()",
        "x = rows[0]['email']; x",
        "print('nothing\\r' + rows[0]['email'][:4] + '\\r' + rows[0]['email'])",
        "!echo {rows[0]['email']}",
    ],
)
async def test_what_a_model_reads_has_tokens_for_values(session: Session, code: str) -> None:
    await session.run("rows = servers.host.find('x')")
    events = [event async for event in session.stream(code)]
    assert hides_all(events) and hides_all(events[-1].result), events
    assert hides_all(await session.variables())


async def test_the_first_result_with_a_token_says_what_that_is(session: Session) -> None:
    assert (await session.run("1 + 1")).notes == ()
    first = await session.run("servers.host.find('x')[0]['email']")
    [note] = first.notes
    assert str(first.value) in note and "`privacy`" in note
    assert (await session.run("servers.host.find('x')[0]['email']")).notes == ()


async def test_a_token_is_the_value_again_in_code_and_for_a_tool(
    session: Session, office: Office
) -> None:
    token = await email_token(session)
    found = await session.run(f"[row['last_name'] for row in rows if row['email'] == {token!r}]")
    assert isinstance(found.value, list) and len(found.value) == 1
    answer = await session.run(f"servers.host.mail({token!r}, 'for ' + rows[0]['first_name'])")
    assert office.sent[-1] == ("zelda@jazz.org", "for Zelda")
    assert answer.value == f"sent to {token}"


async def test_tokens_are_those_of_one_conversation(bell: Divingbell) -> None:
    async with bell.session() as one, bell.session() as other:
        token = await email_token(one)
        assert await email_token(one) == token != await email_token(other)
        with pytest.raises(UnknownToken, match="not known in this conversation"):
            await other.run(f"{token!r}")


async def test_a_token_that_nobody_gave_out_is_refused(session: Session) -> None:
    with pytest.raises(UnknownToken, match="to the letter"):
        await session.run("'[EMAIL_482715]'")
    result = await session.run("servers.host.mail('[EMAIL_' + '482715]', 'x')")
    assert result.error is not None and "not known in this conversation" in result.error.message


async def test_what_looks_like_a_token_is_none_where_a_server_or_file_has_it(
    session: Session,
) -> None:
    await session.files.put("note.txt", "[PHONE_482715]")
    result = await session.run("servers.host.find('x')[0]['notes'], open('note.txt').read()")
    assert "(EMAIL_482715)" in str(result.value) and "(PHONE_482715)" in str(result.value)
    kept = await session.run("'[JIRA_4827150]'")
    assert kept.value == "[JIRA_4827150]"


async def test_a_live_token_in_a_servers_words_was_guessed_and_names_nothing(
    session: Session, office: Office
) -> None:
    token = await email_token(session)
    office.planted = {"last_name": f"Quillon {token} Marsh", "note": f"forward to {token}"}
    found = await session.run("planted = servers.host.planted()\nplanted['note']")
    assert found.value == f"forward to ({token[1:-1]})"
    name = (await session.run("planted['last_name']")).value
    assert isinstance(name, str) and name.startswith("[NAME_")
    for code in ("planted['last_name']", repr(name)):
        answer = await session.run(f"servers.host.mail({code}, planted['note'])")
        assert office.sent[-1] == (
            f"Quillon ({token[1:-1]}) Marsh",
            f"forward to ({token[1:-1]})",
        )
        assert answer.value == f"sent to {name}"
    failed = await session.run(f"servers.host.fail('[EMAIL_' + '{token[7:]}')")
    assert failed.error is not None and token in failed.error.message, "this is the code's own"
    assert await session.reveal(name) == f"Quillon ({token[1:-1]}) Marsh"


async def test_what_looks_like_a_token_is_none_in_what_is_printed(session: Session) -> None:
    code = "for letter in '[EMAIL_' + '482715]': print(letter, end='', flush=True)"
    events = [event async for event in session.stream(code)]
    assert "".join(event.text or "" for event in events) == "(EMAIL_482715)"


async def test_a_secret_goes_to_no_other_server_than_it_came_from(
    session: Session, office: Office
) -> None:
    key = (await session.run("rows = servers.host.find('x'); rows[0]['key']")).value
    assert isinstance(key, str) and key.startswith("[API_KEY_")
    await session.run(f"servers.host.mail({key!r}, 'x')")
    assert office.sent[-1][0] == KEY
    own = (await session.run(f"other = {KEY[::-1]!r}[::-1].replace('Tq8v', 'Ab9c'); other")).value
    assert isinstance(own, str) and own.startswith("[API_KEY_")
    refused = await session.run(f"servers.host.mail({own!r}, 'x')")
    assert refused.error is not None
    assert "stands for a secret that came from no server" in refused.error.message


async def test_a_file_that_is_put_teaches_who_is_in_it(session: Session) -> None:
    await session.files.put("people.csv", "first_name,city\nOphelia,Elsinore\n")
    result = await session.run("print(open('people.csv').read())")
    assert "Ophelia" not in result.text and "Elsinore" in result.text
    assert await session.files.get("people.csv") == b"first_name,city\nOphelia,Elsinore\n"
    assert await session.get("__name__") == "__main__"


PEOPLE = (
    "import pandas as pd\n"
    "people = pd.DataFrame({'first_name': ['Ophelia', 'Bo Li'], 'city': ['Elsinore', 'Oslo']})"
)


@pytest.mark.parametrize(
    "code",
    [
        "people",
        "display(people)",
        "print(people)",
        "people.set_index('city')",
        "people.first_name",
        "print(people.first_name)",
        "people.iloc[1]",
        "print(people.to_dict('records'))",
        "people.first_name.value_counts()",
        "people.assign(n=1).groupby('first_name').sum(numeric_only=True)",
        "people.to_dict('records')",
        "pd.concat([people] * 9, axis=1)",
    ],
)
async def test_tables_that_code_made_itself_teach_who_is_in_them(
    session: Session, code: str
) -> None:
    await session.run(PEOPLE)
    events = [event async for event in session.stream(code)]
    shown = str([(event.text, event.outputs, event.result) for event in events])
    assert "[NAME_" in shown and "Ophelia" not in shown and "Bo Li" not in shown, shown
    assert "first_name" in shown


async def test_the_value_of_a_cell_teaches_who_is_in_it(session: Session) -> None:
    result = await session.run(f"{PEOPLE}\npeople.to_dict()")
    assert "Ophelia" not in str((result.value, result.text)) and "Elsinore" in str(result.value)


async def test_tables_that_commands_print_teach_too(session: Session) -> None:
    code = f"{PEOPLE}\nprint(people)"
    result = await session.command(["python", "-c", code])
    assert "[NAME_" in result.stdout and "Elsinore" in result.stdout, result
    assert "Ophelia" not in result.stdout and "Bo Li" not in result.stdout


async def test_images_are_held_back_with_a_word(session: Session) -> None:
    png = "bytes.fromhex('89504e470d0a1a0a') + b'x' * 100"
    result = await session.run(f"display({{'image/png': {png}}}, raw=True)")
    assert "image/png of 108 bytes is held back" in result.text
    assert not [output for output in result.outputs if output.type == "image/png"]


async def test_a_person_gets_the_values_and_the_journal_hears_of_it(
    bell: Divingbell, session: Session
) -> None:
    token = await email_token(session)
    heard: list[Any] = []
    stop = bell.journal.watch(heard.append)
    assert await session.reveal(f"Dear {token}!") == "Dear zelda@jazz.org!"
    assert await session.reveal("Dear all!") == "Dear all!"
    stop()
    [revealed] = [event for event in heard if isinstance(event, Revealed)]
    assert (revealed.count, revealed.by) == (1, "program")


async def test_what_is_known_is_revealed_beside_what_is_not(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    token = await email_token(session)
    unknown = [f"[EMAIL_4827{number}]" for number in range(10, 40)]
    text = f"{unknown[0]} and {token}, [NOTE_482715], {' '.join(unknown)}"
    assert await session.reveal(text) == text.replace(token, "zelda@jazz.org")
    [told] = [record.getMessage() for record in caplog.records if "revealed" in record.message]
    assert unknown[0] in told and "and 10 more" in told
    assert "NOTE_482715" not in told and token not in told and "zelda" not in told


async def test_an_unquoted_token_says_what_to_write(session: Session) -> None:
    token = await email_token(session)
    for code in (f"'x' == {token}", f"str({token[1:-1]})", "[EMAIL_482715]"):
        result = await session.run(code)
        assert result.error is not None and result.error.type == "NameError"
        assert "a token is text: write it in quotes" in result.error.hint, result.error


async def test_commands_have_words_and_input_restored_and_output_hidden(session: Session) -> None:
    token = await email_token(session)
    result = await session.command(["printf", "to %s", token])
    assert result.stdout == f"to {token}"
    counted = await session.command("wc -c", input=token)
    assert counted.stdout.split() == [str(len("zelda@jazz.org"))]
    words = ["sh", "-c", 'printf zel; sleep 0.1; echo "$0"', "da@jazz.org"]
    events = [event async for event in session.command_stream(words)]
    assert hides_all(events) and "zel" not in str(events[0].text)
    handle = await session.command(["sh", "-c", "printf zelda@ja; sleep 60"], background=True)
    await asyncio.sleep(0.3)
    assert "zelda@ja" not in handle.stdout
    await handle.kill()


async def test_a_value_with_a_token_in_it_and_one_that_is_shown_twice(session: Session) -> None:
    token = await email_token(session)
    again = await session.run(f"print({token!r}, '<', rows[0]['email'], '>')\nrows[0]['email']")
    assert again.text.split() == [token, "<", token, ">", f"'{token}'"]


BY_BYTE = """
import os
os.write(1, b"so ")
for byte in {value!r}.encode():
    os.write({to}, bytes([byte]))
_ = os.write(1, b" it is")
"""
IN_TWO = """
import os
data = {value!r}.encode()
for cut in range(1, len(data)):
    os.write(1, data[:cut])
    os.sched_yield()
    os.write(1, data[cut:] + b"\\n")
"""


async def shown_of(session: Session, code: str) -> tuple[str, str]:
    """What is streamed of a cell, and what its result says."""
    events = [event async for event in session.stream(code)]
    return "".join(event.text or "" for event in events), events[-1].result.text


@pytest.mark.parametrize("to", [1, 2])
async def test_a_value_that_is_written_byte_by_byte_is_whole_before_it_is_shown(
    session: Session, office: Office, to: int
) -> None:
    office.planted = {"last_name": NAME}
    await session.run("servers.host.planted()")
    for text in await shown_of(session, BY_BYTE.format(value=NAME, to=to)):
        assert re.fullmatch(r"so (?: it is)?\[NAME_\d+\](?: it is)?", text), text
    for text in await shown_of(session, IN_TWO.format(value=NAME)):
        assert set(TOKEN.sub("x", text).split()) == {"x"}, text


async def test_a_value_is_hidden_wherever_the_limit_of_output_cuts_it(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    office.planted = {"last_name": NAME}
    options: dict[str, Any] = {"privacy": "personal", "tools": office.tools()}
    async with (
        Divingbell(pool=0, preload=[], limits={"output": 600}, **options) as bell,
        bell.session() as session,
    ):
        await session.run("servers.host.planted()")
        for value in (NAME, "4111 1111 1111 1111", "zelda@jazz.org"):
            for shift in range(len(f"{value} ".encode())):
                code = f"print('.' * {shift} + {value + ' '!r} * 60)"
                for text in await shown_of(session, code):
                    assert "left out" in text and "[" in text
                    left = re.sub(r"\[… .* bytes left out.*", "", TOKEN.sub("", text))
                    for part in (value[:4], value[-4:]):
                        assert part not in left, (shift, text)


async def test_numbers_are_looked_at_too(session: Session) -> None:
    result = await session.run("{'card': 4111111111111111, 'n': 123456789012, 'x': [1, 2.5]}")
    assert isinstance(result.value, dict)
    assert result.value["card"] != 4111111111111111 and result.value["n"] == 123456789012
    assert result.value["x"] == [1, 2.5]


async def test_with_secrets_people_are_shown(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with (
        Divingbell(privacy="secrets", pool=0, preload=[], tools=office.tools()) as bell,
        bell.session() as session,
    ):
        result = await session.run("servers.host.find('x')")
        assert "zelda@jazz.org" in str(result.value) and KEY not in str(result)
        [note] = result.notes
        assert note.startswith("secrets, such as keys and passwords,")
        shown = await session.run("display({'image/png': b'\\x89PNG'}, raw=True)")
        assert [output.type for output in shown.outputs] == ["image/png"]


async def test_behind_the_border_of_the_sandbox_code_has_tokens_too(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    rules = {"border": {"host.find": "sandbox"}}
    async with (
        Divingbell(
            privacy="personal", privacy_rules=rules, pool=0, preload=[], tools=office.tools()
        ) as bell,
        bell.session() as session,
    ):
        token = await email_token(session)
        result = await session.run(f"rows[0]['email'] == {token!r}, len(rows[0]['email'])")
        assert result.value == (True, len(token))
        assert (await session.run("rows[0]['email'][::-1]")).value == token[::-1]
        await session.run("servers.host.mail(rows[0]['email'], rows[0]['first_name'])")
        assert office.sent[-1] == ("zelda@jazz.org", "Zelda")


async def test_a_result_is_checked_before_its_values_are_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def known() -> Literal["zelda@jazz.org", "bo@jazz.org"]:
        """Say who is known."""
        return "zelda@jazz.org"

    schema = HostFunction(known).definition["outputSchema"]
    assert "zelda@jazz.org" in str(schema), "of which no token is one"
    rules = {"border": {"host.known": "sandbox"}}
    async with (
        Divingbell(
            privacy="personal", privacy_rules=rules, pool=0, preload=[], tools=[known]
        ) as bell,
        bell.session() as session,
    ):
        result = await session.run("answer = servers.host.known()\nanswer, len(answer)")
        assert result.status == "ok" and isinstance(result.value, tuple), result.error
        assert TOKEN.fullmatch(result.value[0]) and result.value[1] == len(result.value[0])


async def test_it_is_kept_in_memory_where_nothing_can_be_written(
    office: Office,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "data").write_text("a file, where a folder should be")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    options: dict[str, Any] = {"pool": 0, "preload": [], "policy": {"pin": False}}
    async with (
        Divingbell(privacy="personal", tools=office.tools(), **options) as bell,
        bell.session() as session,
    ):
        token = await email_token(session)
        assert await session.reveal(token) == "zelda@jazz.org"
    assert "forgotten when this program ends" in caplog.text


async def test_what_has_a_token_is_hidden_without_the_words_that_made_it_known(
    session: Session, office: Office
) -> None:
    first = await session.run("'passport no. C01X' + '00T47'")
    [token] = TOKEN.findall(str(first.value))
    bare = await session.run("number = 'C01X' + '00T47'; print(number); [number]")
    assert bare.value == [token] and "C01X00T47" not in str(bare)
    echoed = await session.run(f"servers.host.mail({token!r}, 'x')")
    assert office.sent[-1][0] == "C01X00T47" and echoed.value == f"sent to {token}"


@pytest.mark.parametrize(
    "word",
    ["[email_482715]", "[EMAIL_48271]", "<EMAIL_482715>", "[EMAIL 482715]", "{Email-482715}"],
)
async def test_what_was_meant_as_a_token_is_not_sent_as_it_stands(
    session: Session, office: Office, word: str
) -> None:
    sent = len(office.sent)
    result = await session.run(f"servers.host.mail({word!r}, 'x')")
    assert result.error is not None and "letter by letter" in result.error.message
    assert len(office.sent) == sent
    assert (await session.run("servers.host.mail('[JIRA_48271] [x_1]', 'x')")).status == "ok"


async def test_a_token_in_a_comment_is_no_value(session: Session) -> None:
    assert (await session.run("1 + 1  # not [EMAIL_482715]")).value == 2


async def test_a_number_does_not_reach_into_the_next_column(session: Session) -> None:
    code = (
        "import pandas\npandas.DataFrame({'order_id': [500412, 501077], "
        "'phone': ['780-999-2181', '0494 92 82 32']})"
    )
    text = (await session.run(code)).text
    assert "500412" in text and "501077" in text
    assert "780-999" not in text and "0494 92" not in text


async def test_numbers_of_personal_fields_are_hidden_whatever_a_table_makes_of_them(
    session: Session,
) -> None:
    code = "{'card_number': 4111111111111111.0, 'national_id': 30123456, 'n': 30123457, 'x': 0.5}"
    result = await session.run(f"row = {code}\nprint(row)\nrow")
    assert isinstance(result.value, dict)
    assert "[CARD_" in str(result.value["card_number"]), result.value
    assert "[NATIONAL_ID_" in str(result.value["national_id"])
    assert (result.value["n"], result.value["x"]) == (30123457, 0.5)
    assert type(result.usage.memory_peak) is int


async def test_half_a_character_does_not_end_the_search_for_others(session: Session) -> None:
    people = [{"first_name": "Aa\ud800b"}, {"first_name": "Marmaduke"}, {"last_name": "Zebulonia"}]
    await session.files.put("people.json", json.dumps(people))
    result = await session.run("print(open('people.json').read(), 'invoice_Zebulonia_2024.pdf')")
    assert "Marmaduke" not in result.text and "Zebulonia" not in result.text


async def test_many_numbers_beside_a_word_are_read_twice_at_most(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = 0
    whole = Conversation.tokenised_all

    def counted(self: Conversation, *given: Any, **named: Any) -> list[str]:
        nonlocal passes
        passes += 1
        return whole(self, *given, **named)

    monkeypatch.setattr(Conversation, "tokenised_all", counted)
    numbers = "random.sample(range(10**9, 10**10), 700)"
    await session.run(f"import random; print('phone', *{numbers}, sep='\\n')")
    assert passes <= 8


async def test_words_of_the_protocol_are_never_hidden(session: Session) -> None:
    await session.files.put("a.json", '{"first_name": ["content", "isError", "text", "Ophelia"]}')
    result = await session.run("print('content isError text Ophelia')")
    assert result.text.startswith("content isError text [NAME_")


async def test_what_was_sealed_stays_so_in_another_process(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    rules = {"border": {"host.find": "sandbox"}}
    options: dict[str, Any] = {"privacy_rules": rules, "pool": 0, "preload": []}
    async with (
        Divingbell(privacy="personal", tools=office.tools(), **options) as bell,
        bell.session(id="fixed") as session,
    ):
        token = await email_token(session)
    async with (
        Divingbell(privacy="personal", tools=office.tools(), **options) as bell,
        bell.session(id="fixed") as session,
    ):
        back = await session.run(f"servers.host.mail({token!r}, 'x')[::-1]")
        assert office.sent[-1][0] == "zelda@jazz.org"
        assert "gro.zzaj" not in str(back.value), back


async def test_after_a_restart_a_value_has_the_same_token_and_names_are_known(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    options: dict[str, Any] = {"pool": 0, "preload": [], "tools": office.tools()}
    code = "print('Sayrefitz, zelda@jazz.org')"
    async with (
        Divingbell(privacy="personal", **options) as bell,
        bell.session("letters", user="ann") as session,
    ):
        await session.run("servers.host.find('x')")
        first = (await session.run(code)).text
        assert TOKEN.sub("", first) == ", \n", first
    async with Divingbell(privacy="personal", **options) as bell:
        async with bell.session("letters", user="ann") as session:
            streamed = [event.text async for event in session.stream(code)]
            assert "".join(streamed) == first
            assert (await session.run(code)).text == first
        async with bell.session("others", user="ann") as session:
            assert TOKEN.sub("", (await session.run(code)).text) == "Sayrefitz, \n"
        async with bell.session("letters", user="bob") as session:
            assert TOKEN.findall((await session.run(code)).text) != TOKEN.findall(first)[1:]
    # What is no longer to be hidden is not hidden because it once was.
    async with (
        Divingbell(privacy="secrets", **options) as bell,
        bell.session("letters", user="ann") as session,
    ):
        assert (await session.run(code)).text == "Sayrefitz, zelda@jazz.org\n"


async def test_what_is_not_learned_any_more_is_said_once(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.border.privacy.learner.MOST_OF_SERVER", 2)
    said = "More came from host than is looked through for names and addresses"
    async with bell.session() as session:
        first = await session.run("print(servers.host.find('x'))")
        assert len([note for note in first.notes if said in note]) == 1, first.notes
        second = await session.run("print(servers.host.find('x'))")
        assert not any(said in note for note in second.notes), second.notes


async def test_an_argument_is_found_again_where_a_tool_says_it_again() -> None:
    said: list[str] = []

    def save(last_name: str, contact: dict[str, str]) -> str:
        """Save a person."""
        said.append(f"{last_name} of {contact['street']}")
        return "saved"

    def newest() -> str:
        """Say who was saved last."""
        return f"it was {said[-1]}"

    async with Divingbell(pool=0, privacy="personal", tools=[save, newest]) as bell:
        async with bell.session() as session:
            result = await session.run(
                "from servers.host import *\n"
                "name, where = 'Sayre' + 'fitz', 'Rue de ' + 'Lappe 17'\n"
                "save(last_name=name, contact={'street': where})\n"
                "print(newest(), name.upper())"
            )
            assert said == ["Sayrefitz of Rue de Lappe 17"]
            assert result.text.startswith("it was [NAME_") and "[ADDRESS_" in result.text
            assert "ayrefitz" not in result.text and "SAYREFITZ" not in result.text
        async with bell.session() as other:
            assert (await other.run("print('Sayrefitz')")).text == "Sayrefitz\n"


async def test_sessions_that_have_ended_are_forgotten_and_open_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Divingbell(pool=0, privacy="personal") as bell, bell.session("open") as session:
        await session.run("print('ann@example.org')")
        for number in range(3):
            async with bell.session(f"short {number}") as short:
                await short.run("print('ann@example.org')")
        border = bell.border
        assert isinstance(border, PrivacyBorder)
        vaults = border._vaults
        later = time.monotonic() + bell.settings.vault.keep + 60
        for vault in vaults._vaults.values():
            monkeypatch.setattr(vault, "_clock", lambda: later)
        monkeypatch.setattr(vaults, "_clock", lambda: later)
        await vaults.round()
        assert [list(user) for user in border._conversations.values()] == [["open"]]
        assert len(vaults._vaults) == 1


async def test_threads_that_ask_for_one_conversation_have_the_same_one(
    bell: Divingbell,
) -> None:
    border: Any = bell._border
    names = [f"at-once-{number}" for number in range(400)]
    ready = threading.Barrier(4)

    def ask() -> list[object]:
        ready.wait()
        return [border._of(Principal("ann", name)) for name in names]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        found = await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))
    finally:
        sys.setswitchinterval(before)
    for conversations in zip(*found, strict=True):
        assert len(set(map(id, conversations))) == 1
