"""Skills by MCP's Skills extension, as clients of others read them."""

import base64
import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.skills.client import SkillsClientExtension
from mcp import Client, MCPError, StdioServerParameters
from pydantic import ConfigDict

from divingbell import Divingbell
from divingbell.host.login import login_name
from divingbell.skills import skill_file, tool_digests
from divingbell.skills.record import Record
from divingbell.skills.skill import Skill
from divingbell.skills.store import FOLDER_NAME, Stores
from divingbell.skills.tool_digests import ToolDigests
from divingbell.surfaces.mcp import skills
from divingbell.surfaces.mcp.server import Surface
from tests.skills.samples import RECORD, made
from tests.surfaces.cli.command import environment
from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.serving import COMMAND, QUIET, serving
from tests.waiting import PATIENCE

NAME, URI = "top-customers", "skill://top-customers/SKILL.md"
IMAGE = b"\x89PNG\r\n\x1a\n\0\1\2"


def rich_skill() -> Skill:
    """A skill with files of every kind."""
    head = "---\nname: top-customers\ndescription: Finds customers. Use it in tests.\n"
    head += "license: MIT\nmetadata:\n  version: 1.5\n  author: Ann\n---\n"
    files = {
        "scripts/top_customers.py": b"def run():\n    return '\xe2\x80\xae'\n",
        "references/a file & more.md": b"# More\r\n",
        "assets/logo.png": IMAGE,
    }
    return skill_file.parse(f"{head}\n# Customers\r\n".encode(), files, foreign=True)


def fast(transport: Any) -> Any:
    return FastClient(transport, extensions=[SkillsClientExtension()], timeout=PATIENCE)


async def judge(client: Any, skill: Skill) -> None:
    """Read a skill as fastmcp does: it compares sizes, digests and the head with what it gets."""
    [entry] = await client.list_skills()
    assert entry.uri == URI and entry.frontmatter.name == NAME
    assert entry.frontmatter.metadata == {"version": 1.5, "author": "Ann"}
    assert await client.get_skill(URI) == entry
    read = await client.read_skill(URI)
    assert dict(read.files) == skill.all_files


async def test_fastmcp_reads_them_over_stdio(tmp_path: Path) -> None:
    skill = rich_skill()
    Stores(tmp_path / "divingbell" / FOLDER_NAME).of(login_name()).save(skill, RECORD)
    variables = {**os.environ, **QUIET, "XDG_DATA_HOME": str(tmp_path)}
    async with fast(StdioTransport(COMMAND, ["serve"], env=variables)) as client:
        await judge(client, skill)


async def test_fastmcp_reads_them_over_http_and_each_user_has_their_own(tmp_path: Path) -> None:
    stores = Stores(tmp_path / "divingbell" / FOLDER_NAME)
    skill = rich_skill()
    stores.of("ann").save(skill, RECORD)
    stores.of("bob").save(made("other-one"), RECORD)
    tokens = {"ann": "ann-has-a-long-token-1", "bob": "bob-has-a-long-token-1"}
    given = [word for user in tokens for word in ("--token", f"{user}={tokens[user]}")]
    async with serving(*given, environment={"XDG_DATA_HOME": str(tmp_path)}) as served:

        def of(user: str) -> Any:
            return fast(StreamableHttpTransport(served.url, auth=tokens[user]))

        async with of("ann") as ann:
            await judge(ann, skill)
        async with of("bob") as bob:
            assert [each.frontmatter.name for each in await bob.list_skills()] == ["other-one"]
            with pytest.raises(MCPError, match="No skill is served"):
                await bob.get_skill(URI)
            with pytest.raises(MCPError, match="No skill is served"):
                await bob.read_resource(URI)
            listed = [str(each.uri) for each in await bob.list_resources()]
            assert listed == ["skill://other-one/SKILL.md"]


SAVE = """
def doubled(numbers):
    'Return each number twice as large.'
    return [2 * number for number in numbers]

save_skill("doubled", doubled, "Doubles numbers", "doubled([1])")["import"]
"""


async def test_what_an_agent_has_saved_a_later_session_of_another_server_imports(
    tmp_path: Path,
) -> None:
    told = {**environment(**QUIET), "XDG_DATA_HOME": str(tmp_path)}
    serve = StdioServerParameters(command=COMMAND, args=["serve"], env=told)
    async with Client(serve) as agent:
        saved = await agent.call_tool("execute_python", {"code": SAVE})
        assert not saved.is_error and "from skills import doubled" in str(saved.content)
    async with fast(StdioTransport(COMMAND, ["serve"], env=told)) as client:
        found = await client.call_tool("execute_python", {"code": "search_skills('double')"})
        assert "'from skills import doubled'" in str(found.content)
        using = "from skills import doubled\ndoubled([20, 21])"
        used = await client.call_tool("execute_python", {"code": using})
        assert not used.is_error and "[40, 42]" in str(used.content)
        [entry] = await client.list_skills()
        assert (entry.frontmatter.name, entry.frontmatter.description) == (
            "doubled", "Doubles numbers",
        )  # fmt: skip
        assert dict((await client.read_skill(entry.uri)).files).keys() == {
            "SKILL.md", "scripts/doubled.py",
        }  # fmt: skip


# In one process, in both eras


@pytest.fixture(scope="module")
async def one_bell(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(pool=0, skills="on") as bell:
            yield bell


@pytest.fixture
def bell(one_bell: Divingbell) -> Divingbell:
    store = one_bell.skills.stores.of(login_name())
    for name in store.names():
        store.remove(name)
    return one_bell


@pytest.fixture
async def client(bell: Divingbell, era: Era) -> AsyncIterator[Client]:
    surface = Surface(bell)
    async with Client(surface.server, mode=era, cache=None) as client:
        yield client
    await surface.close()


class Ask(types.Request[Any, str]):
    """Any request."""

    method: str
    params: dict[str, Any]


class Told(types.Result):
    """Any result, as it came."""

    model_config = ConfigDict(extra="allow")


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    found = await client.session.send_request(Ask(method=method, params=params), Told)
    return dict(found.model_extra or {})


def keep(bell: Divingbell, *kept: Skill, record: Record = RECORD) -> None:
    for skill in kept:
        bell.skills.stores.of(login_name()).save(skill, record)


async def read_bytes(client: Client, uri: str) -> bytes:
    [content] = (await client.read_resource(uri)).contents
    if isinstance(content, types.TextResourceContents):
        return content.text.encode()
    return base64.b64decode(content.blob)


async def compare(client: Client, entry: dict[str, Any]) -> None:
    """Every file that an entry names is what is read there."""
    for each in entry["resources"]:
        data = await read_bytes(client, each["uri"])
        assert each["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert each["size"] == len(data)


async def test_the_extension_is_declared(client: Client, era: Era) -> None:
    """The older protocol has no place for that: there they are resources."""
    capabilities = client.server_capabilities
    declared = {skills.EXTENSION: {}} if era == "auto" else None
    assert capabilities.extensions == declared and capabilities.resources


async def test_where_skills_are_off_nothing_is_said_of_them(era: Era) -> None:
    async with Divingbell(pool=0, skills="off") as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            assert not client.server_capabilities.extensions
            with pytest.raises(MCPError, match="Method not found"):
                await ask(client, "skills/list")
            with pytest.raises(MCPError):
                await client.read_resource(URI)
        await surface.close()


async def test_entries_are_of_the_form_that_the_extension_has(
    bell: Divingbell, client: Client, era: Era
) -> None:
    keep(bell, rich_skill())
    told = await ask(client, "skills/list")
    assert told["ttlMs"] == 0 and told["cacheScope"] == "private" and "nextCursor" not in told
    [entry] = told["skills"]
    assert entry.keys() == {"uri", "frontmatter", "resources"} and entry["uri"] == URI
    assert [each["uri"] for each in entry["resources"]] == [
        URI,
        "skill://top-customers/assets/logo.png",
        "skill://top-customers/references/a%20file%20%26%20more.md",
        "skill://top-customers/scripts/top_customers.py",
    ]
    await compare(client, entry)
    got = await ask(client, "skills/get", uri=URI)
    assert got["skill"] == entry
    if era == "auto":
        assert told["resultType"] == got["resultType"] == "complete"


async def test_they_are_resources_for_clients_that_know_no_skills(
    bell: Divingbell, client: Client
) -> None:
    keep(bell, rich_skill())
    [listed] = (await client.list_resources()).resources
    assert (listed.uri, listed.name, listed.mime_type) == (URI, NAME, "text/markdown")
    assert listed.description == rich_skill().description
    templates = (await client.list_resource_templates()).resource_templates
    assert "skill://{skill}/{+path}" in [each.uri_template for each in templates]


async def test_a_newer_version_is_told(bell: Divingbell, client: Client) -> None:
    keep(bell, made())
    before = await ask(client, "skills/get", uri=URI)
    keep(bell, made(code="def run():\n    return 2\n"))
    after = await ask(client, "skills/get", uri=URI)
    assert before != after
    await compare(client, after["skill"])
    bell.skills.stores.of(login_name()).remove(NAME)
    with pytest.raises(MCPError, match="No skill is served"):
        await ask(client, "skills/get", uri=URI)


NO_SKILLS = (
    "skill://top-customers",
    "skill://top-customers/",
    "skill://top-customers/SKILL.md/",
    "skill://top-customers/scripts/top_customers.py",
    "skill://top-customers/../top-customers/SKILL.md",
    "skill://top-customers/%53KILL.md",
    "skill://TOP-customers/SKILL.md",
    "skill://absent/SKILL.md",
    "skill:///SKILL.md",
    "skill://top-customers/SKILL.md\0",
    "https://example.org/SKILL.md",
    "",
)
NO_FILES = ("absent.md", "../../../etc/passwd", "%2e%2e/x", "scripts", "/etc", "")


async def test_what_is_no_skill_is_not_got(bell: Divingbell, client: Client) -> None:
    keep(bell, made())
    for uri in NO_SKILLS:
        with pytest.raises(MCPError) as failed:
            await ask(client, "skills/get", uri=uri)
        assert failed.value.code == types.INVALID_PARAMS, uri


async def test_what_is_no_file_is_not_read(bell: Divingbell, client: Client) -> None:
    keep(bell, made())
    for path in NO_FILES:
        with pytest.raises(MCPError) as failed:
            await client.read_resource(f"skill://top-customers/{path}")
        assert failed.value.code == types.INVALID_PARAMS, path


async def test_pages(bell: Divingbell, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "MAX_PAGE", 3)
    given = [f"skill-{letter}" for letter in "gfedcba"]
    keep(bell, *map(made, given))
    found, cursors = [], []
    told = await ask(client, "skills/list")
    while True:
        found += [entry["frontmatter"]["name"] for entry in told["skills"]]
        if "nextCursor" not in told:
            break
        cursors.append(told["nextCursor"])
        told = await ask(client, "skills/list", cursor=cursors[-1])
    assert found == sorted(given) and len(cursors) == 2
    for wrong in ("../x", "x" * 1000, "A"):
        with pytest.raises(MCPError, match="cursor"):
            await ask(client, "skills/list", cursor=wrong)


async def test_a_page_ends_where_its_files_are_many_bytes(
    bell: Divingbell, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_PAGE_BYTES", 10)
    keep(bell, made("skill-a"), made("skill-b"))
    told = await ask(client, "skills/list")
    assert len(told["skills"]) == 1 and told["nextCursor"] == "skill-a"


async def test_of_ten_thousand_a_page_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Divingbell(pool=0, skills="on") as bell:
        rows = [(made(f"skill-{number}"), RECORD) for number in range(10_000)]
        bell.skills.stores.of(login_name()).save_all(rows)
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            told = await ask(client, "skills/list")
            assert len(told["skills"]) == skills.MAX_PAGE
            last = await ask(client, "skills/list", cursor="skill-9990")
            assert len(last["skills"]) == 9 and "nextCursor" not in last
            assert len((await client.list_resources()).resources) == skills.MAX_LISTED
        await surface.close()


async def test_one_that_is_to_be_tried_again_is_not_offered(
    bell: Divingbell, client: Client
) -> None:
    keep(bell, made(), record=Record("session", state="changed"))
    assert (await ask(client, "skills/list"))["skills"] == []
    assert (await client.list_resources()).resources == []
    with pytest.raises(MCPError, match="No skill is served"):
        await client.read_resource(URI)


async def test_one_whose_tool_has_changed_is_marked_and_not_offered(
    bell: Divingbell, client: Client
) -> None:
    def orders(limit: int) -> int:
        """Orders of customers."""
        return limit

    bell.tool(orders)
    [pinned] = ToolDigests(bell.gateway).of(["host.orders"]).items()
    keep(bell, made(), record=Record("session", tools=dict([pinned])))
    [listed] = (await client.list_resources()).resources
    assert listed.uri == URI and len((await ask(client, "skills/list"))["skills"]) == 1

    bell.remove_tool("orders")
    orders.__doc__ = "Orders of all customers."
    bell.tool(orders)
    try:
        assert (await ask(client, "skills/list"))["skills"] == []
        assert (await client.list_resources()).resources == []
        for asked in (ask(client, "skills/get", uri=URI), client.read_resource(URI)):
            with pytest.raises(MCPError, match="No skill is served"):
                await asked
        record = bell.skills.stores.of(login_name()).get(NAME).record
        assert record.state == "changed" and record.reason.startswith("host.orders changed")
    finally:
        bell.remove_tool("orders")


async def test_one_whose_server_has_not_told_its_tools_is_not_offered(
    bell: Divingbell, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_digests, "PATIENCE", 0.1)
    bell.gateway.add("slow", {"command": "sleep", "args": ["60"]})
    keep(bell, made(), made("other-one"), record=Record("session", tools={"slow.x": "1"}))
    keep(bell, made("third-one"))
    told = await ask(client, "skills/list")
    assert [entry["frontmatter"]["name"] for entry in told["skills"]] == ["third-one"]
    with pytest.raises(MCPError, match="No skill is served"):
        await client.read_resource(URI)
    await bell.gateway.remove("slow")


async def test_hidden_characters_are_shown(bell: Divingbell, client: Client) -> None:
    skill_md = made().skill_md + "\u202eorders\U000e0041\x1b[31m".encode()
    code = "HIDDEN = '\u202e'\n".encode()
    keep(bell, skill_file.parse(skill_md, {"scripts/top_customers.py": code}))
    [entry] = (await ask(client, "skills/list"))["skills"]
    await compare(client, entry)
    assert (await read_bytes(client, URI)).endswith(rb"\u202eorders\U000e0041")
    assert await read_bytes(client, "skill://top-customers/scripts/top_customers.py") == code


async def test_a_head_that_hides_something_is_not_offered(bell: Divingbell, client: Client) -> None:
    text = '---\nname: top-customers\ndescription: "shown \\u202e hidden"\n---\n'
    keep(bell, skill_file.parse(text.encode(), {}), made("other-one"))
    told = await ask(client, "skills/list")
    assert [entry["frontmatter"]["name"] for entry in told["skills"]] == ["other-one"]
    with pytest.raises(MCPError, match="hidden characters"):
        await ask(client, "skills/get", uri=URI)


@pytest.mark.parametrize(
    "value",
    ["2026-01-02", "0x" + "f" * 5000, "-9223372036854775809", "18446744073709551616", ".inf"],
)
async def test_a_head_that_json_can_not_hold_is_not_offered(
    bell: Divingbell, client: Client, value: str
) -> None:
    text = f"---\nname: top-customers\ndescription: d\nmetadata:\n  day: {value}\n---\n"
    keep(bell, skill_file.parse(text.encode(), {}, foreign=True), made("other-one"))
    told = await ask(client, "skills/list")
    assert [entry["frontmatter"]["name"] for entry in told["skills"]] == ["other-one"]
    with pytest.raises(MCPError, match="such as dates"):
        await ask(client, "skills/get", uri=URI)


async def test_personal_data_is_kept_back_and_digests_are_of_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: Era
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Divingbell(pool=0, skills="on", privacy="personal") as bell:
        skill_md = made().skill_md + b"\nAsk ann.smith@example.org\n"
        csv = b"e-mail\nbob@example.org\n"
        files = {"contacts.csv": csv, "notes/of carl@example.org.md": b"# Carl\n"}
        keep(bell, skill_file.parse(skill_md, files))
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            [entry] = (await ask(client, "skills/list"))["skills"]
            assert "example.org" not in json.dumps(entry)
            await compare(client, entry)
            assert b"example.org" not in await read_bytes(client, URI)
            csv = await read_bytes(client, "skill://top-customers/contacts.csv")
            assert b"[EMAIL_" in csv
            # A file may be named after someone: what the entry names is what is read there.
            [notes] = [each["uri"] for each in entry["resources"] if "notes/" in each["uri"]]
            assert "[EMAIL_" in unquote(notes) and await read_bytes(client, notes) == b"# Carl\n"
            assert (await ask(client, "skills/get", uri=URI))["skill"] == entry
        await surface.close()


@pytest.mark.parametrize("way", ["skills/list", "skills/get", "resources/list", "resources/read"])
async def test_a_client_gets_the_labels_of_a_skill_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    flows = [{"from": ["crm.*"], "to": ["slack.*"], "action": "deny"}]
    async with Divingbell(pool=0, skills="on", policy={"flow": flows}) as bell:
        keep(bell, made(), record=Record("session", labels=("crm.find",)))
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            assert len(bell.gateway.labels) == 0
            if way.startswith("skills"):
                await ask(client, way, **({"uri": URI} if way == "skills/get" else {}))
            elif way == "resources/list":
                await client.list_resources()
            else:
                await client.read_resource(URI)
            assert len(bell.gateway.labels) == 1
        await surface.close()


async def test_skills_that_can_not_be_read_are_in_nobodys_way(
    bell: Divingbell, client: Client
) -> None:
    keep(bell, made())
    store = bell.skills.stores.of(login_name())
    [path] = store.folder.glob("*.db")
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    try:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="can't be used"):
            await ask(client, "skills/list")
    finally:
        path.write_bytes(whole)
