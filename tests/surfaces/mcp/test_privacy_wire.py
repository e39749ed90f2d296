"""No value of any kind leaves `divingbell serve` for a client, by whichever way.

A server has a value of each kind in every place that the protocol has for its words, and code shows
them in every way that it has. All bytes that are sent are searched, in both eras and by both
transports, for every value in every writing. What comes back has to be the values again.
"""

import asyncio
import base64
import csv
import html
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mcp_types as types
import pytest
from mcp import Client

from divingbell.host.login import login_name
from divingbell.settings.kinds import KINDS, PERSONAL
from divingbell.skills import skill_file
from divingbell.skills.store import FOLDER_NAME, Stores
from tests.datasets import making
from tests.skills.samples import RECORD
from tests.surfaces.mcp import canaries, wire
from tests.surfaces.mcp.canaries import VALUES, kinds_in, tokens_in
from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.serving import fixture, serving, settings
from tests.surfaces.mcp.test_skills import Ask, Told
from tests.waiting import PATIENCE, until

MORE = """
[limits]
output = 20000
[[policy.rules]]
tools = ["crm.send"]
action = "ask"
"""
START = f"""
import sys, time, threading, warnings, logging
kinds = {list(VALUES)!r}
texts = dict(zip(kinds, servers.crm.find()["texts"]))
values = servers.crm.find()["people"][0]
whole = "\\n\\n".join(texts.values())
"""
CELLS = {
    "stdout": "print(whole)",
    "stderr": "print(whole, file=sys.stderr)",
    "warning": "for text in texts.values(): warnings.warn(text)",
    "logging": "logging.warning(whole)",
    "raw": "import os; os.write(1, whole.encode())",
    "shell": "open('x', 'w').write(whole)\n!cat x",
    "html": (
        "import html; page = html.escape(whole)\n"
        "display({'text/html': page, 'text/plain': page}, raw=True)"
    ),
    "json": (
        "from IPython.display import JSON\ndisplay(JSON({text: [text] for text in texts.values()}))"
    ),
    "value": "{text: [text] for text in texts.values()}",
    "text": "whole",
    "bytes": "whole.encode()",
    "error": "raise ValueError(whole)",
    "chained": (
        "try: raise KeyError(whole)\nexcept KeyError as error: raise OSError(whole) from error"
    ),
    "note": "e = ValueError('x'); e.add_note(whole); raise e",
    "exit": "sys.exit(whole)",
    "syntax": "compile('(' + repr(whole), whole[:60], 'exec')",
    "asserted": "assert False, whole",
    "letters": "for letter in whole: print(letter, end='', flush=True)",
    "streams": "for n, c in enumerate(whole): print(c, end='', flush=n % 7 == 0)",
    "coloured": "print('\\x1b[31m'.join(whole[i : i + 3] for i in range(0, len(whole), 3)))",
    "columns": "import pandas; pandas.DataFrame([texts])",
    "rows": "pandas.DataFrame({'text': list(texts.values())})",
    "printed": "print(pandas.DataFrame({'text': list(texts.values())}))",
    "tool": "servers.crm.say()",
    "failing": "servers.crm.fail()",
    "refused": "servers.crm.refuse()",
    "promise": "servers.crm.promise()",
    "echoed": "servers.crm.echo(**{'what': whole})",
    "later": (
        "def talk():\n"
        "    time.sleep(0.3)\n"
        "    for text in texts.values(): print(text, flush=True)\n"
        "    open('talked', 'w').close()\n"
        "threading.Thread(target=talk).start(); print(whole)"
    ),
    "earlier": ("import os\nwhile not os.path.exists('talked'): time.sleep(0.05)\ntime.sleep(0.1)"),
}
"""Cells that show a value of each kind."""
QUIETLY = {
    "asked": "texts?",
    "whos": "%whos",
    "overwritten": "for text in texts.values(): print('x ' + text + '\\rann')",
    "backspace": "for text in texts.values(): print(text[:9] + '\\b' + text[9:])",
    "page": "from IPython.display import HTML; display(HTML(whole))",
    "markdown": "from IPython.display import Markdown; display(Markdown(whole))",
    "data": "b'\\xff\\x00' + whole.encode()",
    "svg": "display({'image/svg+xml': f'<svg><text>{whole}</text></svg>'}, raw=True)",
    "png": "display({'image/png': b'\\x89PNG\\xff\\x00' + whole.encode()}, raw=True)",
    "pdf": "display({'application/pdf': b'%PDF\\xff\\x00' + whole.encode()}, raw=True)",
    "narrow": (
        "with pandas.option_context('display.max_colwidth', 18):\n"
        "    print(pandas.DataFrame({'text': list(texts.values())}))\n"
        "    display(pandas.DataFrame({'text': list(texts.values())}))"
    ),
    "attribute": "getattr(servers.crm, texts['EMAIL'])",
    "traced": "def f(x): raise ValueError(x)\nf('{EMAIL}')",
    "murmured": "servers.crm.murmur()",
    "questioned": "servers.crm.ask(); servers.crm.sample()",
    "named": (
        "for kind, text in texts.items():\n"
        "    name = text.replace('/', '-').replace('\\n', ' ')[:200] + '.txt'\n"
        "    open(name, 'w').write(text)\n"
        "open('wide.txt', 'w', encoding='utf-16').write(whole)\n"
        "open('picture.png', 'wb').write(b'\\xff\\x00' + whole.encode())\n"
        "open('all.txt', 'w').write(whole)"
    ),
}
"""Cells that show some of them, or none."""
IN_SKILL = """
import pathlib
folder = skills.path("shown")
for file in sorted(folder.rglob("*")):
    print(file, file.is_file() and file.read_text())
"""
TABLES = {
    "datasets": "servers.data.list_datasets()",
    "described": "servers.data.describe_dataset('people')",
    "imported": "servers.data.import_dataset('people')",
    "printed table": "print(*servers.data.import_dataset('people').text)",
    "queried": (
        "sql = \"SELECT kind, text || '!' AS said, street FROM people\"\n"
        "print(servers.data.query_dataset(sql).to_csv())"
    ),
    "no query": """servers.data.query_dataset("SELECT nothing FROM '{EMAIL}'")""",
    "no dataset": "servers.data.describe_dataset('{EMAIL}')",
}
CUT = "print('.' * {shift} + (texts[{kind!r}] + ' ') * 2000)"
CHANGE = "open(texts['NAME'] + '.txt', 'a').write('!')"
FILES = "divingbell://sessions/default/files/"
HELD = "is held back"
DESK = "Questions go to desk@quayside.org or +49 30 4401 2290."
ERAS: tuple[Era, ...] = ("legacy", "auto")


class Ear:
    """A client that keeps all that it hears, and whose model writes tokens."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.approvals: list[str] = []
        self.tokens: dict[str, str] = {}

    def options(self) -> dict[str, Any]:
        return {
            "logging_callback": self._log,
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "message_handler": self._message,
            "log_level": "debug",
            "cache": None,
        }

    async def _log(self, params: Any) -> None:
        self.heard.append(("log", _plain(params)))

    async def _elicit(self, context: Any, params: Any) -> types.ElicitResult:
        if params.message.startswith(wire.APPROVAL):
            self.approvals.append(params.message)
            return types.ElicitResult(action="accept", content={"decision": "yes"})
        self.heard.append(("elicitation", _plain(params)))
        return types.ElicitResult(action="accept", content={"name": "x"})

    async def _sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        self.heard.append(("sampling", _plain(params)))
        content = types.TextContent(text=f"about {self.tokens['EMAIL']}")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def _message(self, message: Any) -> None:
        if hasattr(message, "model_dump"):
            self.heard.append(("message", _plain(message)))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append(("progress", message))

    async def take(self, what: str, way: Any) -> Any:
        try:
            found = await way
        except Exception as error:
            self.heard.append((what, [str(error), str(getattr(error, "data", None))]))
            return None
        self.heard.append((what, _plain(found)))
        return found

    def of(self, what: str) -> str:
        said = (said for kind, said in self.heard if kind == what)
        return "\n".join(json.dumps(each, ensure_ascii=False) for each in said)


class Visit:
    """One client's way through everything that there is."""

    def __init__(self, client: Client, ear: Ear) -> None:
        self.client, self.ear = client, ear

    async def call(self, what: str, tool: str, /, **arguments: Any) -> Any:
        way = self.client.call_tool(tool, arguments, progress_callback=self.ear.progress)
        return await self.ear.take(what, way)

    async def run(self, what: str, code: str, **more: Any) -> Any:
        return await self.call(what, "execute_python", code=code, **more)

    async def everything(self) -> None:
        await self.call("find", "find")
        self.ear.tokens = tokens_in(self.ear.of("find"))
        await self.run("first name", "servers.crm.find()['people'][0]['first_name']")
        await self.tools()
        await self.cells()
        await self.sessions()
        await self.resources()
        await self.subscription()
        await self.prompts()
        await self.skills()
        await self.datasets()

    async def tools(self) -> None:
        for name in ("say", "measure", "link", "embed", "picture", "fail", "refuse", "murmur"):
            await self.call(name, name)
        for name in ("ask", "sample", "promise"):
            await self.call(name, name)
        given = [self.ear.tokens[kind] for kind in VALUES]  # and no name that says what it is
        await self.call("echo", "echo", given=given, nested={"in": given})
        await self.call("wrong", "promise", n=self.ear.tokens["EMAIL"])
        await self.call("send", "send", to=given)
        await self.call("unknown tool", canaries.TEXTS["EMAIL"])
        await self.ear.take("definitions", self.client.list_tools())
        asked = {"query": "crm promise questions", "detail_level": "full"}
        await self.call("found", "search_tools", **asked)

    async def cells(self) -> None:
        await self.run("start", START)
        for name, code in (CELLS | QUIETLY).items():
            await self.run(name, code.replace("{EMAIL}", self.ear.tokens["EMAIL"]))
        for kind in VALUES:
            for shift in (0, 7):
                await self.run("cut", CUT.format(kind=kind, shift=shift))
        given = [self.ear.tokens[kind] for kind in VALUES]
        await self.run("given", f"given = {given!r}\nservers.crm.echo(code=given)")
        same = "kind for kind, value in zip(kinds, given) if value in texts[kind]"
        await self.run("same", f"print(sorted({same}))")
        email = self.ear.tokens["EMAIL"]
        await self.run("approved", f"servers.crm.send(to={email!r})")

    async def sessions(self) -> None:
        name = tokens_in(self.ear.of("first name"))["NAME"]
        await self.run("named session", "open('x.txt', 'w').write('1')", session_id=name)
        await self.call("sessions", "list_sessions")
        await self.ear.take("files of it", self.client.list_resources())
        await self.call("closed", "close_session", session_id=name)
        await self.call("closed again", "close_session", session_id=name)
        await self.call("no such name", "close_session", session_id=self.ear.tokens["EMAIL"])
        await self.call("no server", "search_tools", query="x", server=self.ear.tokens["EMAIL"])
        await self.call("query", "search_tools", query=self.ear.tokens["EMAIL"])

    async def resources(self) -> None:
        take, read = self.ear.take, self.client.read_resource
        listed = await take("resources", self.client.list_resources())
        await take("templates", self.client.list_resource_templates())
        for resource in listed.resources:
            what = "file" if resource.uri.startswith(FILES) else "resource"
            await take(what, read(resource.uri))
        await take("missing", read("crm://people/missing"))
        address = self.ear.tokens["NAME"]
        await take("no file", read(f"{FILES}{address}.none"))
        await take("no file", read(f"{FILES}{quote(address, safe='')}.none"))
        await take("no resource", read(f"other://{address}"))

    async def skills(self) -> None:
        async def ask(what: str, method: str, **params: Any) -> Any:
            request = Ask(method=method, params=params)
            return await self.ear.take(what, self.client.session.send_request(request, Told))

        listed = await ask("skills", "skills/list")
        for entry in listed.model_extra["skills"]:
            await ask("skill", "skills/get", uri=entry["uri"])
            for each in entry["resources"]:
                await self.ear.take("file of skill", self.client.read_resource(each["uri"]))
        await ask("no skill", "skills/get", uri=f"skill://{self.ear.tokens['EMAIL']}/SKILL.md")
        await self.run("skill in code", IN_SKILL)

    async def datasets(self) -> None:
        for what, code in TABLES.items():
            await self.run(what, code.replace("{EMAIL}", self.ear.tokens["EMAIL"]))

    async def subscription(self) -> None:
        name = self.ear.tokens["NAME"]
        listed = (await self.client.list_resources()).resources
        [uri] = [each.uri for each in listed if each.uri.startswith(FILES) and name in each.uri]
        if self.client.mode == "legacy":
            wanted = types.SubscribeRequestParams(uri=uri)
            request = types.SubscribeRequest(params=wanted)
            await self.client.session.send_request(request, types.EmptyResult)
            await self.run("changed", CHANGE)
            await until(lambda: "resources/updated" in self.ear.of("message"), "it is told")
            return
        async with (
            asyncio.timeout(PATIENCE),
            self.client.listen(resource_subscriptions=[uri]) as events,
        ):
            await self.run("changed", CHANGE)
            told = await anext(aiter(events))
            assert uri in str(told)

    async def prompts(self) -> None:
        take, topic = self.ear.take, " ".join(self.ear.tokens.values())
        await take("prompts", self.client.list_prompts())
        await take("prompt", self.client.get_prompt("plan", {"topic": topic}))
        reference = types.PromptReference(name="plan")
        await take("complete", self.client.complete(reference, {"name": "topic", "value": topic}))


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


# What each step of the visit has to say: otherwise nothing was searched.
SAY_ALL = (
    *("find", "say", "measure", "link", "embed", "fail", "refuse", "echo", "send", "cut", "given"),
    *("progress", "log", "elicitation", "sampling"),
    *("resources", "templates", "resource", "file", "missing", "prompts", "prompt", "complete"),
    *("file of skill", "skill in code", "imported", "printed table", "queried"),
)
SAY_ONE = (
    *("sample", "unknown tool", "attribute", "traced", "approved", "named session", "sessions"),
    *("files of it", "closed", "closed again", "no server", "no file", "no resource", "message"),
    *("skills", "skill", "no skill", "datasets", "described", "no query", "no dataset"),
)
HOLD_BACK = ("picture", "prompt", "sampling", "resource", "file", "png", "pdf", "svg", "data")


@dataclass
class Place:
    """Where one server has its settings, and its upstream server its record."""

    folder: Path

    def __post_init__(self) -> None:
        given = {"texts": canaries.TEXTS, "people": canaries.PEOPLE}
        values = self.folder / "values.json"
        values.write_text(json.dumps(given))
        entry = fixture("crm", direct=["*"])
        entry["args"] = [*entry["args"], str(values), str(self.folder / "record")]
        self.data = {"datasets": str(self.folder / "tables")}
        self.file = settings(self.folder, {"crm": entry, "data": self.data}, "hybrid")
        self.file.write_text(f'skills = "on"\n{self.file.read_text()}\n{MORE}')
        self.environment = {"XDG_DATA_HOME": str(self.folder / "data")}
        self._keep_skills()
        self._write_tables()

    def _keep_skills(self) -> None:
        """As they are kept that came in otherwise than by code: nobody has looked for values."""
        whole = "\n\n".join(canaries.TEXTS.values())
        head = "---\nname: {}\ndescription: Says {}.\n---\n"
        shown = skill_file.parse(
            f"{head.format('shown', 'much')}\n{whole}\n".encode(),
            {
                f"notes/{VALUES['EMAIL']}.md": whole.encode(),
                f"{VALUES['NAME']}/data.json": json.dumps(canaries.TEXTS).encode(),
                "scripts/shown.py": f"whole = {whole!r}\n".encode(),
            },
        )
        titled = skill_file.parse(head.format("titled", VALUES["EMAIL"]).encode(), {})
        stores = Stores(self.folder / "data" / "divingbell" / FOLDER_NAME)
        for user in (login_name(), "local"):  # over stdio, and by the token of one run
            stores.of(user).save_all([(shown, RECORD), (titled, RECORD)])

    def _write_tables(self) -> None:
        folder = self.folder / "tables"
        folder.mkdir()
        table = io.StringIO()
        rows = csv.writer(table)
        rows.writerow(("kind", "text", "full_name", "street"))
        for kind, text in canaries.TEXTS.items():
            rows.writerow((kind, text, VALUES["NAME"], VALUES["ADDRESS"]))
        (folder / "people.csv").write_text(table.getvalue())
        (folder / f"{VALUES['EMAIL']}.csv").write_text(table.getvalue())
        making.readable(folder)

    def arguments(self, *more: str) -> list[str]:
        return ["--config", str(self.file), *more]

    def forget(self) -> None:
        """Begin a new record."""
        (self.folder / "record").unlink(missing_ok=True)

    def received(self, what: str) -> list[Any]:
        """What the upstream server got, by what it was for."""
        lines = map(json.loads, (self.folder / "record").read_text().splitlines())
        return [got for kind, got in lines if kind == what]


def judge(ear: Ear, seen: wire.Wire, search: canaries.Search = canaries.ALL) -> None:
    rest, questions = seen.parted()
    assert len(rest) > 100_000, "the wire was recorded"
    assert search(rest) == {}, "values have left"
    assert len(questions) == len(ear.approvals) == 2


def judge_what_was_said(ear: Ear) -> None:
    missing = {what: set(VALUES) - kinds_in(ear.of(what)) for what in (*CELLS, *SAY_ALL)}
    assert {what: kinds for what, kinds in missing.items() if kinds} == {}
    assert [what for what in SAY_ONE if not kinds_in(ear.of(what))] == []
    assert [what for what in HOLD_BACK if HELD not in ear.of(what)] == []
    # Definitions are documentation, and stay as they are.
    assert [ear.of(what).count(DESK) for what in ("definitions", "found")] == [2, 2]


def judge_what_came_back(ear: Ear, place: Place) -> None:
    """Tokens were values again for the server, for code, and for the person who approves."""
    direct, inside = place.received("echo")[0], place.received("echo")[-1]
    values = list(VALUES.values())
    assert direct == {"given": values, "nested": {"in": values}}
    assert inside == {"code": values}
    assert place.received("send") == [{"to": values}, {"to": VALUES["EMAIL"]}]
    assert f"{sorted(PERSONAL)}" in ear.of("same").replace('\\"', '"')
    whole, one = ear.approvals
    written = {kind: json.dumps(value, ensure_ascii=False) for kind, value in VALUES.items()}
    assert [kind for kind in written if written[kind][1:-1] not in whole] == []
    assert VALUES["EMAIL"] in one
    for got in (place.received("prompt")[-1], place.received("complete")[-1]):
        said = json.dumps(got, ensure_ascii=False)
        assert [kind for kind in PERSONAL if VALUES[kind] not in said] == []
    assert VALUES["EMAIL"] in json.dumps(place.received("sampling/createMessage")[0])
    assert quote(VALUES["NAME"], safe="") in place.received("read")[-1]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_there_is_a_value_of_each_kind() -> None:
    assert VALUES.keys() == KINDS.keys()


async def test_over_stdio(place: Place, era: Era) -> None:
    ear = Ear()
    arguments, environment = place.arguments("--private"), place.environment
    options = ear.options()
    async with wire.over_stdio(arguments, environment, place.folder, era, options) as (
        client,
        sent,
    ):
        await Visit(client, ear).everything()
    judge(ear, sent)
    judge_what_was_said(ear)
    judge_what_came_back(ear, place)


async def test_over_http_in_both_eras(place: Place) -> None:
    async with serving(*place.arguments("--private"), environment=place.environment) as served:
        for era in ERAS:
            place.forget()
            ear = Ear()
            async with wire.over_http(served, era, ear.options()) as (client, sent):
                await Visit(client, ear).everything()
            judge(ear, sent)
            judge_what_was_said(ear)
            judge_what_came_back(ear, place)


async def test_without_a_word_it_is_secrets_that_do_not_leave_and_the_rest_is_seen_to(
    place: Place,
) -> None:
    """This is also what says that the search finds what there is, on a real wire."""
    ear = Ear()
    arguments, environment = place.arguments(), place.environment
    options = ear.options()
    async with wire.over_stdio(arguments, environment, place.folder, "auto", options) as (
        client,
        sent,
    ):
        visit = Visit(client, ear)
        await visit.call("find", "find")
        for name in ("say", "measure", "link", "embed", "fail", "refuse", "murmur"):
            await visit.call(name, name)
        await visit.run("start", START)
        for name, code in CELLS.items():
            await visit.run(name, code)
    assert canaries.ONLY_SECRETS(sent.bytes) == {}
    assert canaries.ONLY_PERSONAL(sent.bytes).keys() == PERSONAL
    with pytest.raises(AssertionError, match="values have left"):
        judge(ear, sent)


async def test_of_a_dataset_server_that_is_called_directly_no_value_leaves(place: Place) -> None:
    place.file = settings(place.folder, {"data": place.data | {"direct": ["*"]}}, "hybrid")
    ear = Ear()
    arguments, environment = place.arguments("--private"), place.environment
    options = ear.options()
    async with wire.over_stdio(arguments, environment, place.folder, "auto", options) as (
        client,
        sent,
    ):
        visit = Visit(client, ear)
        await visit.call("imported", "import_dataset", name="people")
        ear.tokens = tokens_in(ear.of("imported"))
        sql = "SELECT kind, text || '!' AS said, street FROM people"
        await visit.call("queried", "query_dataset", sql=sql)
        await visit.call("datasets", "list_datasets")
        await visit.call("described", "describe_dataset", name="people")
        await visit.call("no dataset", "describe_dataset", name=ear.tokens["EMAIL"])
    assert canaries.ALL(sent.bytes) == {}, "values have left"
    assert {*VALUES} == kinds_in(ear.of("imported")) == kinds_in(ear.of("queried"))
    assert kinds_in(ear.of("datasets")) and kinds_in(ear.of("no dataset"))


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_that_has_left_is_seen_in_each_writing(kind: str) -> None:
    value = VALUES[kind]
    writings = [
        value.encode(),
        json.dumps({"x": [value]}).encode(),
        json.dumps(json.dumps([value])).encode(),
        json.dumps(value, ensure_ascii=False).encode(),
        html.escape(f"<{value}>").encode(),
        quote(value).encode(),
        quote(value, safe="").encode(),
        (value.upper() if value.isascii() else value).encode(),
        *(base64.b64encode(b"." * shift + value.encode() + b"..") for shift in range(3)),
        base64.b64encode(value.encode("utf-16")),
        value[: -len(value) // 5].encode(),
    ]
    for data in writings:
        assert canaries.ALL(b"before " + data + b" after").keys() == {kind}, data
    assert canaries.ALL(b"before and after") == {}


def test_only_an_approval_may_show_values() -> None:
    asked = {
        "message": f"{wire.APPROVAL}x: {VALUES['EMAIL']}",
        "requestedSchema": {"properties": {}},
    }
    seen = wire.Wire()
    message = {"method": "elicitation/create", "params": asked}
    seen.bytes = json.dumps(message).encode()
    assert canaries.ALL(seen.parted()[0]).keys() == {"EMAIL"}, "a server's question is none"
    asked["requestedSchema"] = {"properties": {"decision": {}}}
    seen.bytes = b"data: " + json.dumps({**message, "id": VALUES["IP"]}).encode()
    rest, [question] = seen.parted()
    assert VALUES["EMAIL"] in question and canaries.ALL(rest).keys() == {"IP"}
