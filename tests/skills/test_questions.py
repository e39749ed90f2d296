"""Skills as code has them: saved, found and imported, in real sandboxes."""

import asyncio
import base64
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import skills_ref

from divingbell import Divingbell, Result, Session
from divingbell.journal.events import CallSent, SkillSaved, SkillUsed
from divingbell.skills import answers, questions, skill_file, trial
from divingbell.skills.record import Record
from divingbell.skills.store import Stores
from divingbell.text import is_hiding
from tests.skills.samples import RUN_BY_PATH, made, of_another_agent
from tests.waiting import until, until_there

POLICY = {"flow": [{"from": "host.orders", "to": "host.mail", "action": "deny"}]}
SKILL = '''
def top_customers(limit=3):
    """The customers with the largest orders.

    >>> top_customers(2)
    """
    return sorted(orders(4), key=lambda row: -row["sum"])[:limit]
'''
SAVE = f'{SKILL}\nsave_skill("top_customers", top_customers, "Finds the best customers")'
CALL = "from servers.host import orders\norders(4)"


def orders(limit: int) -> list[dict[str, Any]]:
    """Orders of customers."""
    return [{"who": f"customer {number}", "sum": number * 10} for number in range(limit)]


def mail(text: str) -> str:
    """Mail somebody."""
    return text


def mail_again(text: str) -> str:
    """Mail somebody once more."""
    return text


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def house(home: Path) -> AsyncIterator[Divingbell]:
    before, os.environ["XDG_DATA_HOME"] = os.environ["XDG_DATA_HOME"], str(home)
    try:
        async with Divingbell(
            pool=0, preload=[], copy_after=0.05, skills="on", policy=POLICY, tools=[orders, mail]
        ) as bell:
            yield bell
    finally:
        os.environ["XDG_DATA_HOME"] = before


@pytest.fixture
async def ann(house: Divingbell, request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    """A session of a user who has no skills yet."""
    async with house.session(user=f"ann {request.node.name}") as session:
        yield session


@pytest.fixture
def events(house: Divingbell) -> Iterator[list[Any]]:
    seen: list[Any] = []
    stop = house.journal.watch(seen.append)
    yield seen
    stop()


async def value(session: Session, code: str) -> Any:
    result = await session.run(code)
    assert result.status == "ok", result.error
    return result.value


async def failure(session: Session, code: str) -> str:
    result: Result = await session.run(code)
    assert result.status == "error" and result.error is not None, result
    return str(result.error)


def store_of(house: Divingbell, home: Path, session: Session) -> Any:
    return Stores(home / "divingbell" / "skills").of(session.principal.user)


async def saved(session: Session) -> None:
    await value(session, CALL)
    await value(session, SAVE)


async def test_a_function_is_saved_and_another_session_imports_it(
    house: Divingbell, ann: Session, events: list[Any]
) -> None:
    await value(ann, CALL)
    told = await value(ann, SAVE)
    assert told == {
        "name": "top-customers", "version": 1, "import": "from skills import top_customers",
    }  # fmt: skip
    async with house.session(user=ann.principal.user) as later:
        code = "from skills import top_customers\n[each['sum'] for each in top_customers(2)]"
        assert await value(later, code) == [30, 20]
        module = "from skills.top_customers import orders\norders.__name__"
        assert await value(later, module) == "orders"
    [kept] = [event for event in events if isinstance(event, SkillSaved)]
    [used] = [event for event in events if isinstance(event, SkillUsed)]
    assert (kept.name, kept.version, kept.origin, kept.cell) == ("top-customers", 1, "session", 2)
    assert (used.name, used.cell) == ("top-customers", 1) and used.tokens > 20


async def test_a_version_is_asked_for_once(ann: Session, events: list[Any]) -> None:
    await saved(ann)
    for _ in range(3):
        assert len(await value(ann, "from skills import top_customers\ntop_customers(1)")) == 1
    assert len([event for event in events if isinstance(event, SkillUsed)]) == 1


async def test_a_new_version_is_there_in_all_sessions_of_the_user(
    house: Divingbell, ann: Session
) -> None:
    await saved(ann)
    use = "from skills import top_customers\ntop_customers()"
    async with house.session(user=ann.principal.user) as other:
        assert len(await value(other, use)) == 3
        again = "save_skill('top_customers', 'def top_customers():\\n  \"d\"\\n  return 7', 'd')"
        assert (await value(ann, again))["version"] == 2
        assert await value(ann, use) == await value(other, use) == 7


async def test_the_example_runs_in_a_fresh_sandbox_and_nothing_goes_to_a_server(
    ann: Session, events: list[Any]
) -> None:
    await value(ann, CALL + "\nsecret = 1")
    sent = len([event for event in events if isinstance(event, CallSent)])
    await value(ann, SAVE)
    assert len([event for event in events if isinstance(event, CallSent)]) == sent == 1
    hidden = 'def f():\n    """d"""\n    import __main__\n    return __main__.secret'
    assert "has no attribute 'secret'" in await failure(ann, f"save_skill('f', {hidden!r}, 'd')")


async def test_an_example_with_a_call_that_was_not_made_is_refused(ann: Session) -> None:
    await value(ann, "from servers.host import orders\norders(5)")
    told = await failure(ann, SAVE)
    assert 'host.orders was not called in this session with {"limit": 4}' in told
    assert "call it so once" in told


async def test_an_example_that_does_not_end_is_ended(
    ann: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SECONDS", 0.5)
    endless = 'while True:\n    pass\ndef f():\n    """d"""\n'
    told = await failure(ann, f"save_skill('f', {endless!r}, 'd')")
    assert "its example fails" in told and "0.5 s" in told


async def test_an_example_can_not_save_or_use_other_skills(ann: Session) -> None:
    await saved(ann)
    nested = 'def f():\n    """d"""\n    from skills import top_customers\n'
    assert "other skills can't be imported" in await failure(
        ann, f"save_skill('f', {nested!r}, '-')"
    )
    saving = (
        'from skills import save_skill\ndef f():\n    """d"""\n    save_skill("g", "x = 1", "d")\n'
    )
    assert "was not called in this session" in await failure(
        ann, f"save_skill('f', {saving!r}, '-')"
    )


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/etc/x",
        "a\0b",
        ".",
        "..",
        "a/b",
        "a" * 256,
        "json",
        "os",
        "skills",
        "",
        "Ä",
        "a b",
    ],
)
async def test_names_that_lead_elsewhere_are_refused(
    house: Divingbell, home: Path, ann: Session, name: str
) -> None:
    code = f"save_skill({name!r}, 'def x():\\n    \"d\"', 'd')"
    assert "skill can't be" in await failure(ann, code)
    assert not store_of(house, home, ann).names()
    importing = f"import importlib\nimportlib.import_module('skills.' + {name!r})"
    assert (await ann.run(importing)).status == "error"
    assert (await ann.run(f"skills.path({name!r})")).status == "error"


async def test_what_is_wrong_is_told(ann: Session) -> None:
    told = await failure(ann, "save_skill('f', 'def f(:', 'd')")
    assert "the code is no Python: line 1" in told
    told = await failure(ann, "x = 1\ndef f():\n    'd'\n    return x\nsave_skill('f', f, 'd')")
    assert "names from outside: x (line 3)" in told
    assert "takes a function" in await failure(ann, "save_skill('f', 7, 'd')")
    assert "takes a function" in await failure(ann, "save_skill('f', lambda: 1, 'd')")
    assert "are texts" in await failure(ann, "save_skill('f', 'x', None)")
    code = 'def f():\\n    "d"\\n    return "jane.doe@acme-corp.com"'
    told = await failure(ann, f"save_skill('f', '{code}', 'd')")
    assert "personal data or a secret (EMAIL)" in told and "jane" not in told.splitlines()[-1]
    code = 'def _4111_1111_1111_1111():\\n    "d"'
    told = await failure(ann, f"save_skill('4111-1111-1111-1111', '{code}', 'd')")
    assert "the name has personal data" in told and "choose another" in told


async def test_imports_of_the_cell_come_along(ann: Session) -> None:
    await value(ann, "import json as j, math\nfrom collections import OrderedDict as O")
    code = "def f():\n    'd'\n    return j.dumps(O(a=math.pi)), (lambda: math.tau)()\n"
    await value(ann, f"{code}save_skill('f', f, 'd')")
    assert await value(ann, "from skills import f\nf()[0]") == '{"a": 3.141592653589793}'


async def test_a_session_that_awaits_saves_and_imports(ann: Session) -> None:
    await value(ann, CALL)
    code = f"{SKILL}\nx = await save_skill('top_customers', top_customers, 'd')\nx['version']"
    assert await value(ann, code) == 1
    use = "import asyncio\nawait asyncio.sleep(0)\nfrom skills import top_customers\n"
    assert await value(ann, f"{use}callable(top_customers)") is True


async def test_tracebacks_show_the_lines_of_a_skill(ann: Session) -> None:
    await saved(ann)
    told = await failure(ann, "from skills import top_customers\ntop_customers('many')")
    assert 'File "<skill top_customers>", line' in told and "[:limit]" in told


async def test_what_is_not_there_is_said_to_be_missing(ann: Session) -> None:
    assert "ModuleNotFoundError" in await failure(ann, "from skills import nothing")
    assert "there is no skill nothing" in await failure(ann, "import skills.nothing")
    assert await value(ann, "[name for name in dir(skills) if name != 'path']") == []


async def test_another_user_has_none_of_it(house: Divingbell, ann: Session) -> None:
    await saved(ann)
    for user in ("bob", None, f"{ann.principal.user} ", "../" + ann.principal.user):
        async with house.session(user=user) as other:
            assert await value(other, "search_skills()") == []
            assert "there is no skill" in await failure(other, "from skills import top_customers")
            forged = {"name": "top_customers", "user": ann.principal.user, "files": True}
            code = f"from divingbell_inside import tools\ntools.call('load_skill', {forged!r})"
            assert "there is no skill" in await failure(other, code)


async def test_code_that_patches_the_importer_harms_itself_alone(
    house: Divingbell, ann: Session
) -> None:
    await saved(ann)
    patch = (
        "import sys\nfrom divingbell_inside import skills as inside, tools\n"
        "inside._asked = lambda *a, **k: {'name': 'x', 'code': 'top_customers = 1', 'files': {}}\n"
        "inside.source_of = lambda f: 'evil = 1'\n"
        "sys.meta_path.clear()\nsys.modules['skills'] = 7\n"
        "given = {'name': 'top_customers', 'code': 'evil = 1', 'description': 'd'}\n"
        "tools.call('save_skill', given)"
    )
    assert "no function top_customers" in await failure(ann, patch)
    async with house.session(user=ann.principal.user) as later:
        assert len(await value(later, "from skills import top_customers\ntop_customers(1)")) == 1


async def test_searches_find_by_words_and_show_as_much_as_was_asked_for(ann: Session) -> None:
    await saved(ann)
    assert await value(ann, "search_skills('customers', 'name_only')") == [
        {"name": "top-customers"}
    ]
    [item] = await value(ann, "search_skills('best')")
    assert item == {
        "name": "top-customers",
        "description": "Finds the best customers",
        "import": "from skills import top_customers",
    }
    [item] = await value(ann, "search_skills('', 'full')")
    assert item["tools"] == ["host.orders"] and "top_customers(limit=3)" in item["instructions"]
    assert await value(ann, "search_skills('zebra')") == []
    assert "detail_level is one of" in await failure(ann, "search_skills('', 'all')")
    assert "limit is a whole number" in await failure(ann, "search_skills('', limit=0)")


async def test_a_skill_brings_the_flow_labels_of_its_session(
    house: Divingbell, ann: Session
) -> None:
    await saved(ann)
    send = "from servers.host import mail\nmail('x')"
    for meet in (
        "from skills import top_customers",
        "search_skills()",
        "skills.path('top-customers')",
    ):
        async with house.session(user=ann.principal.user) as later:
            assert await value(later, send) == "x"
            assert (await later.run(meet)).status == "ok"
            assert "this conversation has data of host.orders" in await failure(later, send)


async def test_calls_of_a_skill_go_through_the_same_door(house: Divingbell, ann: Session) -> None:
    code = (
        'from servers.host import mail, orders\n\ndef tell():\n    """Tell.\n    """\n'
        "    orders(4)\n    return mail('x')\n"
    )
    await value(ann, "from servers.host import mail, orders\nmail('x')\n_ = orders(4)")
    await value(ann, f"save_skill('tell', {code!r}, 'd')")
    async with house.session(user=ann.principal.user) as later:
        told = await failure(later, "from skills import tell\ntell()")
        assert "host.mail is denied by policy" in told


async def test_a_changed_tool_keeps_a_skill_back_until_it_was_tried_again(
    house: Divingbell, home: Path, ann: Session
) -> None:
    await saved(ann)
    store = store_of(house, home, ann)
    assert set(store.get("top-customers").record.tools) == {"host.orders"}
    store.write_record("top-customers", 1, tools={"host.orders": "another"})
    use = "from skills import top_customers\nlen(top_customers())"
    async with house.session(user=ann.principal.user) as later:
        result = await later.run("search_skills()")
        assert result.value == [] and "top-customers" in result.notes[0]
        told = await failure(later, use)
        assert "host.orders changed since it was saved" in told and "not called" in told
        assert store.get("top-customers").record.state == "changed"
        await value(later, CALL)
        assert await value(later, use) == 3
    assert store.get("top-customers").record.state == "ready"
    assert store.get("top-customers").record.tools["host.orders"] != "another"


async def test_a_function_is_saved_after_the_list_of_tools_was_read_again(
    house: Divingbell, ann: Session
) -> None:
    await value(ann, f"{CALL}\n{SKILL}")
    house.tool(mail_again)
    try:
        await value(ann, "1")  # the list of tools is another one
        await value(ann, 'save_skill("top_customers", top_customers, "Finds the best customers")')
    finally:
        house.remove_tool("mail_again")
    shown = await value(ann, "search_skills('', 'full')[0]")
    assert shown["tools"] == ["host.orders"]


async def test_what_only_looks_like_a_tool_is_not_imported(ann: Session) -> None:
    await value(ann, CALL)
    code = f"def orders(limit):\n    return []\norders.__module__ = 'servers.host.orders'\n{SKILL}"
    told = await failure(ann, f"{code}\nsave_skill('top_customers', top_customers, 'd')")
    assert "uses names from outside: orders" in told


async def test_help_names_skills_and_imports_none(ann: Session, events: list[Any]) -> None:
    await saved(ann)
    before = [event for event in events if isinstance(event, SkillUsed)]
    result = await ann.run("help(skills)")
    assert result.status == "ok" and "There are: top_customers" in result.text
    assert [event for event in events if isinstance(event, SkillUsed)] == before
    assert await value(ann, "skills.top_customers.__name__") == "top_customers"


async def test_a_skill_of_another_agent_has_its_files_in_a_folder(
    house: Divingbell, home: Path, ann: Session
) -> None:
    files = {"scripts/fill.py": b"print('filled')", "references/forms.md": b"# Forms"}
    foreign = skill_file.make("pdf", "Fills forms.", "Run scripts/fill.py", files)
    store_of(house, home, ann).save(foreign, Record("imported", state="untried"))
    assert "skills.path('pdf')" in await failure(ann, "from skills import pdf")
    code = (
        "import subprocess, sys\nfolder = skills.path('pdf')\n"
        "subprocess.run([sys.executable, folder / 'scripts/fill.py'], capture_output=True).stdout"
    )
    assert await value(ann, code) == b"filled\n"
    assert "Fills forms." in await value(ann, "(folder / 'SKILL.md').read_text()")
    for detail in ("with_description", "full"):
        [item] = await value(ann, f"search_skills('', {detail!r})")
        assert item["import"] == "skills.path('pdf')"


async def test_a_script_of_a_skill_that_was_taken_over_is_run_by_its_path(
    house: Divingbell, ann: Session, tmp_path: Path
) -> None:
    folder = of_another_agent(tmp_path)  # where nobody may execute it
    assert (folder / "greet/scripts/greet.sh").stat().st_mode & 0o111 == 0
    await house.skills.import_folder(folder, user=ann.principal.user)
    said = "hello Ann from /workspace/.skills/greet/scripts/greet.sh\n"
    assert await value(ann, RUN_BY_PATH) == said
    command = await ann.command("/workspace/.skills/greet/scripts/greet.sh Ann")
    assert (command.exit_code, command.stdout) == (0, said)


async def test_a_syntax_error_in_a_kept_skill_is_shown_where_it_is_imported(
    house: Divingbell, home: Path, ann: Session
) -> None:
    store_of(house, home, ann).save(made("broken", "def run(:\n"), Record("added"))
    assert '<skill broken>", line 1' in await failure(ann, "from skills import broken")


async def test_the_review_looks_at_skills_too(home: Path, tmp_path: Path) -> None:
    before, os.environ["XDG_DATA_HOME"] = os.environ["XDG_DATA_HOME"], str(tmp_path)
    try:
        async with (
            Divingbell(pool=0, preload=[], skills="on", review={"imports": ["!ctypes"]}) as strict,
            strict.session(user="u") as session,
        ):
            code = 'import ctypes\ndef f():\n    """d"""\n'
            told = await failure(session, f"save_skill('f', {code!r}, 'd')")
            assert "imports ctypes, which is not allowed" in told
            store = Stores(tmp_path / "divingbell" / "skills").of("u")
            store.save(made("sly", code), Record("imported"))
            assert "imports ctypes" in await failure(session, "from skills import sly")
    finally:
        os.environ["XDG_DATA_HOME"] = before


async def test_where_they_are_off_code_is_told(session: Session) -> None:
    for code in ("save_skill('f', 'x', 'd')", "search_skills()", "from skills import f"):
        assert "skills are off here" in await failure(session, code)


async def test_budgets_count_what_an_example_calls(tmp_path: Path) -> None:
    before, os.environ["XDG_DATA_HOME"] = os.environ["XDG_DATA_HOME"], str(tmp_path)
    try:
        async with (
            Divingbell(
                pool=0, preload=[], skills="on", policy={"calls_per_session": 6}, tools=[orders]
            ) as poor,
            poor.session(user="u") as session,
        ):
            await value(session, CALL)
            many = (
                'from servers.host import orders\ndef f():\n    """d"""\n'
                "    return [orders(4) for _ in range(9)]\n"
            )
            told = await failure(session, f"save_skill('f', {many!r}, 'd')")
            assert "all 6 calls are used" in told
    finally:
        os.environ["XDG_DATA_HOME"] = before


async def test_a_skill_is_tested_with_the_real_tools_and_offered_again(
    house: Divingbell, home: Path, ann: Session, events: list[Any]
) -> None:
    await saved(ann)
    user, store = ann.principal.user, store_of(house, home, ann)
    store.write_record("top-customers", 1, tools={"host.orders": "another"}, state="changed")
    before = len([event for event in events if isinstance(event, CallSent)])
    result = await house.skills.test("top-customers", user=user)
    assert result.status == "ok" and len(result.value) == 2
    assert len([event for event in events if isinstance(event, CallSent)]) == before + 1
    assert store.get("top-customers").record.state == "ready"
    assert len(await value(ann, "from skills import top_customers\ntop_customers()")) == 3


async def test_a_test_that_fails_takes_a_skill_back(
    house: Divingbell, home: Path, ann: Session
) -> None:
    code = "\n".join([
        "from servers.host import mail, orders", "def tell():", '    """Tell."""', "    orders(4)",
        "    return mail('x')",
    ])  # fmt: skip
    await value(ann, "from servers.host import mail, orders\nmail('x')\n_ = orders(4)")
    await value(ann, f"save_skill('tell', {code!r}, 'd')")
    result = await house.skills.test("tell", user=ann.principal.user)
    assert result.status == "error" and "denied by policy" in str(result.error)
    assert store_of(house, home, ann).get("tell").record.state == "failed"
    assert await value(ann, "search_skills()") == []


async def test_what_code_saves_is_in_the_format_and_any_agent_can_read_it(
    house: Divingbell, ann: Session, tmp_path: Path
) -> None:
    await saved(ann)
    written = await house.skills.export("top-customers", tmp_path, user=ann.principal.user)
    assert skills_ref.validate(written) == []
    head = skills_ref.read_properties(written)
    assert head.metadata == {"made-by": "divingbell"}  # what is ours: texts under `metadata`
    assert (head.name, head.description) == ("top-customers", "Finds the best customers")
    assert (head.license, head.compatibility, head.allowed_tools) == (None, None, None)
    _, _, body = (written / "SKILL.md").read_text().split("---\n", 2)
    assert "The customers with the largest orders." in body
    parameters, example = body.partition("## Parameters")[2].split("## Example")
    assert "from skills import top_customers\n\ntop_customers(limit=3)\n" in parameters
    assert "from skills import top_customers\n\ntop_customers(2)\n" in example
    assert "- `host.orders`" in example.partition("## Tools")[2]
    assert [path.name for path in (written / "scripts").iterdir()] == ["top_customers.py"]


async def test_names_that_begin_with_a_digit_have_a_module_too(ann: Session) -> None:
    code = 'def _3d():\n    """d"""\n    return 3\n'
    told = await value(ann, f"save_skill('3d', {code!r}, 'd')")
    assert told["import"] == "from skills import _3d"
    assert await value(ann, "from skills import _3d\n_3d()") == 3


async def test_an_example_gets_tokens_in_place_of_what_is_hidden(tmp_path: Path) -> None:
    seen: list[str] = []

    def people() -> list[dict[str, str]]:
        """People."""
        return [{"email": "jane.doe@acme-corp.com"}]

    def orders_of(email: str) -> int:
        """Count orders."""
        seen.append(email)
        return 7

    code = (
        "from servers.host import orders_of, people\n\ndef count():\n    '''Count.'''\n"
        "    email = people()[0]['email']\n    assert {0}\n    return orders_of(email)\n"
    )
    before, os.environ["XDG_DATA_HOME"] = os.environ["XDG_DATA_HOME"], str(tmp_path)
    try:
        async with (
            Divingbell(
                pool=0, preload=[], skills="on", privacy="personal", tools=[people, orders_of]
            ) as private,
            private.session(user="u") as session,
        ):
            use = "from servers.host import orders_of, people\norders_of(people()[0]['email'])"
            assert await value(session, use) == 7
            told = await failure(session, f"save_skill('count', {code.format('0')!r}, 'd')")
            assert "AssertionError" in told and "In a trial tools answer with tokens" in told
            plain = "def plain():\n    'd'\n    assert 0"
            told = await failure(session, f"save_skill('plain', {plain!r}, 'd')")
            assert "AssertionError" in told and "tokens" not in told
            hidden = code.format("email.startswith('[EMAIL_')")
            assert (await value(session, f"save_skill('count', {hidden!r}, 'd')"))["version"] == 1
            token = await value(session, "people()[0]['email']")
            kept = f"save_skill('f', \"def f():\\n    'd'\\n    return '{token}'\", 'd')"
            assert "personal data" in await failure(session, kept)
            raw = "'def f():\\n    \"d\"\\n    return \"[EMAIL_' + '482715]\"'"
            assert "has the token" in await failure(session, f"save_skill('f', {raw}, 'd')")
    finally:
        os.environ["XDG_DATA_HOME"] = before
    assert seen == ["jane.doe@acme-corp.com"]


def _server(text: str, file: Path) -> dict[str, Any]:
    """A server that begins when the file is there."""
    code = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(file)!r}).exists():\n    time.sleep(0.05)\n"
        "from mcp.server.mcpserver import MCPServer\nserver = MCPServer('shop')\n"
        f"@server.tool()\ndef orders() -> int:\n    {text!r}\n    return 3\nserver.run()\n"
    )
    return {"command": sys.executable, "args": ["-c", code]}


async def test_a_skill_waits_for_the_servers_of_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "go"
    file.touch()
    code = "from servers.shop import orders\n\ndef count():\n    'Count.'\n    return orders()\n"
    house = partial(Divingbell, pool=0, preload=[], skills="on")
    before, after = ({"shop": _server(text, file)} for text in ("One.", "Another."))
    async with house(servers=before) as bell, bell.session(user="u") as session:
        await value(session, "from servers.shop import orders\norders()")
        await value(session, f"save_skill('count', {code!r}, 'd')")
    file.unlink()
    async with house(servers=after) as bell, bell.session(user="u") as session:
        with monkeypatch.context() as patched:
            patched.setattr(questions, "PATIENCE", 0.3)
            result = await session.run("search_skills()")
            assert result.value == [] and "the tools of shop are known: count" in result.notes[0]
            told = await failure(session, "from skills import count")
            assert "not offered now" in told and "shop" in told and "still starting" in told
        cell = "open('begun', 'w').close()\nfrom skills import count"
        running = asyncio.create_task(session.run(cell))
        await until_there(session, "begun")
        file.touch()
        assert "shop.orders changed since it was saved" in str((await running).error)
        result = await session.run("search_skills()")
        assert result.value == [] and "tried again: count" in result.notes[0]


async def test_a_search_marks_a_skill_whose_tool_has_really_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "go"
    file.touch()
    code = "from servers.shop import orders\n\ndef count():\n    'Count.'\n    return orders()\n"
    house = partial(Divingbell, pool=0, preload=[], skills="on")
    before, after = ({"shop": _server(text, file)} for text in ("One.", "Another."))
    async with house(servers=before) as bell, bell.session(user="u") as session:
        await value(session, "from servers.shop import orders\norders()")
        await value(session, f"save_skill('count', {code!r}, 'd')")
        assert [each["name"] for each in await value(session, "search_skills()")] == ["count"]
    async with house(servers=after) as bell, bell.session(user="u") as session:
        calling = "from servers.shop import orders\norders()"
        await value(session, calling)  # the server has told its tools of now
        assert (await session.run("search_skills()")).value == []
        [summary] = await bell.skills.list(user="u")
        assert summary.record.state == "changed"
        assert summary.record.reason == "shop.orders changed since it was saved"
        assert await value(session, "from skills import count\ncount()") == 3
        [summary] = await bell.skills.list(user="u")
        assert (summary.record.state, summary.record.reason) == ("ready", "")
        assert [each["name"] for each in await value(session, "search_skills()")] == ["count"]


async def test_a_tool_of_one_session_marks_nothing_for_others(
    house: Divingbell, home: Path, ann: Session
) -> None:
    await saved(ann)
    store = store_of(house, home, ann)
    store.write_record("top-customers", 1, tools={"host.own": "another"})

    def own(limit: int) -> int:
        """A tool of this session alone."""
        return limit

    async with house.session(user=ann.principal.user) as other:
        result = await other.run("search_skills()", tools=[own])
        assert result.value == [] and "tried again" in result.notes[0]
    assert store.get("top-customers").record.state == "ready"
    assert len(await value(ann, "search_skills()")) == 1


async def test_the_endless_import_of_a_skill_that_was_taken_over_ends_and_counts_as_a_failure(
    house: Divingbell, home: Path, ann: Session, tmp_path: Path
) -> None:
    folder = tmp_path / "spin"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: spin\ndescription: Spins for ever.\n---\n# Spin\n")
    (folder / "scripts" / "spin.py").write_text("while True:\n    pass\n")
    [taken] = await house.skills.import_folder(tmp_path, user=ann.principal.user)
    assert (taken.skill.name, taken.record.state) == ("spin", "untried")
    await value(ann, "kept = [1, 2, 3]")
    result = await ann.run("from skills import spin", timeout=1)
    assert result.status == "timeout"
    assert await value(ann, "kept") == [1, 2, 3]

    async def is_counted() -> bool:
        [summary] = store_of(house, home, ann).summaries()
        return (summary.usage.uses, summary.usage.failures) == (1, 1)

    await until(is_counted, "the failure is counted")
    # Half imported is not imported: the next try runs it again, and ends again.
    assert (await ann.run("import skills.spin", timeout=1)).status == "timeout"
    assert await value(ann, "len(kept)") == 3


async def test_a_pin_outlasts_its_tool(house: Divingbell, home: Path, ann: Session) -> None:
    await saved(ann)
    store = store_of(house, home, ann)
    pins = {"host.orders": "another", "host.away": "as it was"}
    store.write_record("top-customers", 1, tools=pins)
    assert await value(ann, "from skills import top_customers\nlen(top_customers())") == 3
    kept = store.get("top-customers").record.tools
    assert kept["host.away"] == "as it was" and kept["host.orders"] != "another"
    store.write_record("top-customers", 1, tools=pins)
    assert (await house.skills.test("top-customers", user=ann.principal.user)).status == "ok"
    assert store.get("top-customers").record.tools == kept


async def test_what_another_process_changes_is_there_with_the_next_cell(
    house: Divingbell, home: Path, ann: Session, events: list[Any]
) -> None:
    await saved(ann)
    again = "save_skill('top_customers', 'def top_customers():\\n  \"d\"\\n  return 7', 'd')"
    await value(ann, again)
    use = "from skills import top_customers\ntop_customers()"
    assert await value(ann, use) == await value(ann, use) == 7
    store = store_of(house, home, ann)  # no event is told of what this does
    store.rollback("top-customers")
    assert len(await value(ann, use)) == 3
    before = len([event for event in events if isinstance(event, SkillUsed)])
    assert len(await value(ann, use)) == 3
    assert len([event for event in events if isinstance(event, SkillUsed)]) == before
    store.remove("top-customers")
    assert "there is no skill" in await failure(ann, use)


async def test_descriptions_hide_nothing_from_code(
    house: Divingbell, home: Path, ann: Session
) -> None:
    hiding = "Ignore \u202e\U000e0041 \x1b[31m all"
    code = "def f():\n    'd'\n"
    await value(ann, f"save_skill('f', {code!r}, {hiding!r})")
    foreign = skill_file.make("g", "Fine.", f"# Read\n{hiding}")
    store_of(house, home, ann).save(foreign, Record("imported"))
    for item in await value(ann, "search_skills('', 'full')"):
        told = item["description"] + item["instructions"]
        assert not is_hiding(told)
        assert "\\u202e" in told and "all" in told


async def test_all_files_of_a_large_skill_are_written_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {f'data/{number} "ä".bin': os.urandom(answers.PIECE + number) for number in range(4)}
    skill = skill_file.make("large", "d", "b", files | {"scripts/large.py": b"x = 1\n"})
    encoded: list[int] = []
    before = answers.base64.b64encode

    def encode(data: bytes) -> bytes:
        assert threading.current_thread() is not threading.main_thread()
        encoded.append(len(data))
        return before(data)

    monkeypatch.setattr(answers.base64, "b64encode", encode)
    told = json.loads((await answers.loaded(skill, files=True)).body)
    assert (told["name"], told["code"]) == ("large", "x = 1\n")
    assert {path: base64.b64decode(data) for path, data in told["files"].items()} == skill.all_files
    assert max(encoded) == answers.PIECE
    assert json.loads((await answers.loaded(skill)).body)["files"] == {}


async def test_a_search_says_that_there_are_others(
    house: Divingbell, home: Path, ann: Session
) -> None:
    store = store_of(house, home, ann)
    store.save_all([(made(f"k{number}"), Record("added")) for number in range(101)])
    result = await ann.run("len(search_skills('', limit=100))")
    assert result.value == 100
    assert result.notes == ("search_skills: there are others: other words show them",)
    result = await ann.run("len(search_skills('tests', limit=9))")
    assert result.value == 9 and "a larger limit (up to 100) or other words" in result.notes[0]
    store.remove("k7")
    assert not (await ann.run("search_skills('', 'name_only', limit=1000)")).notes


async def test_names_like_a_missing_one_are_told_with_their_labels(
    house: Divingbell, ann: Session
) -> None:
    await saved(ann)
    send = "from servers.host import mail\nmail('x')"
    async with house.session(user=ann.principal.user) as later:
        assert await value(later, send) == "x"
        told = await failure(later, "import skills.zebra")
        assert "there is no skill zebra: search_skills() lists all" in told
        assert await value(later, send) == "x"
        told = await failure(later, "from skills import top_customer")
        assert "there is no skill top_customer: did you mean top_customers? search" in told
        assert "this conversation has data of host.orders" in await failure(later, send)
        assert "did you mean top-customers?" in await failure(later, "skills.path('top-customer')")
