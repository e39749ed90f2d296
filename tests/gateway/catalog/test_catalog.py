"""Names, levels of detail, and what the code may see of what servers list."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.catalog.catalog import MAX_COMPARED, MAX_SERVERS, Catalog
from divingbell.gateway.catalog.definitions import MAX_NAME, MAX_SCHEMA
from divingbell.gateway.catalog.descriptions import MAX_BRIEF, MAX_DESCRIBED, described
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.search.index import Index
from divingbell.tool import Tool


def definition(name: str, description: str = "Does a thing.", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", **schema}}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "servers")
    yield made
    made.close()


@pytest.fixture
def catalog(folder: Folder) -> Catalog:
    def shown(tool: Tool) -> Tool | None:
        return None if tool.name == "hidden" else replace(tool, annotations=None)

    made = Catalog(folder, Index(), shown, lambda tool: tool.name != "private")
    made.add_server("git-hub")
    told = [
        definition("create-issue", "Open an issue."),
        definition("list.issues", "List issues."),
        definition("hidden"),
    ]
    made.replace(made.read("git-hub", told, "Be nice."))()
    return made


@pytest.mark.parametrize(
    "name",
    [
        "git-hub.create-issue",
        "git_hub.create_issue",
        "git-hub.create_issue",
        "mcp__git-hub__create-issue",
        "mcp__git_hub__create_issue",
    ],
)
def test_a_tool_is_found_under_each_of_its_names(catalog: Catalog, name: str) -> None:
    assert catalog.find(name).full_name == "git-hub.create-issue"


def test_a_dot_in_a_tools_name_is_part_of_it(catalog: Catalog) -> None:
    assert catalog.find("git-hub.list.issues").function == "list_issues"


@pytest.mark.parametrize("name", ["", ".", "x", "git-hub.", "mcp__", "mcp__git-hub__", "a" * 9999])
def test_what_is_not_there_is_a_plain_failure(catalog: Catalog, name: str) -> None:
    with pytest.raises(ToolFailed, match="there is no tool") as caught:
        catalog.find(name)
    assert caught.value.code == "tool_unknown" and len(str(caught.value)) < 500


def test_no_more_names_are_looked_at_than_are_compared(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [definition(f"report_{number:04}") for number in range(2000)]
    catalog.replace(catalog.read("git-hub", told, ""))()
    looked_at: list[str] = []
    whole = Tool.full_name.fget  # type: ignore[attr-defined]
    counted = property(lambda tool: looked_at.append(tool.name) or whole(tool))
    monkeypatch.setattr(Tool, "full_name", counted)
    with pytest.raises(ToolFailed, match=r"did you mean git-hub\.report_0000"):
        catalog.find("git-hub.reprot_0000")
    assert len(looked_at) == 2 * MAX_COMPARED


def test_a_failure_names_what_is_near(catalog: Catalog) -> None:
    with pytest.raises(ToolFailed, match=r"did you mean git-hub\.create-issue"):
        catalog.find("git-hub.creat-issue")


async def test_levels_of_detail(catalog: Catalog) -> None:
    async def found(level: str) -> dict[str, Any]:
        tools = catalog.search("open an issue", level, 1, None, lambda tool: True)
        return (await described(tools, level))[0]

    name = {
        "name": "git-hub.create-issue",
        "server": "git-hub",
        "python": "servers.git_hub.create_issue",
    }
    assert await found("name_only") == name
    assert await found("with_description") == name | {"description": "Open an issue."}
    catalog.replace(catalog.read("git-hub", [definition("long", "Open an issue.\n" * 200)], ""))()
    assert len((await found("with_description"))["description"]) == MAX_BRIEF
    assert len((await found("full"))["description"]) > 2000
    catalog.replace(catalog.read("git-hub", [definition("create-issue", "Open an issue.")], ""))()
    full = await found("full")
    assert full["signature"].startswith("create_issue(")
    assert full["import"] == "from servers.git_hub import create_issue"
    assert full["input_schema"] == {"type": "object"} and full["output_schema"] is None


def test_of_long_schemas_as_many_are_described_as_fit(catalog: Catalog) -> None:
    long = {f"p{number}": {"type": "string"} for number in range(4_000)}
    tools = [definition(f"open_{number}", properties=long) for number in range(20)]
    catalog.replace(catalog.read("git-hub", tools, ""))()

    def found(level: str) -> int:
        return len(catalog.search("", level, 20, None, lambda tool: True))

    assert found("with_description") == 20
    assert 1 <= found("full") * len(json.dumps(long)) <= MAX_DESCRIBED


@pytest.mark.parametrize(
    ("level", "limit"),
    [("everything", 1), ("", 1), ("full", 0), ("full", -1), ("full", True), ("full", "3")],
)
def test_a_search_that_makes_no_sense_says_so(catalog: Catalog, level: str, limit: Any) -> None:
    with pytest.raises(InvalidInput):
        catalog.search("x", level, limit, None, lambda tool: True)


def test_an_unknown_server_is_named_with_those_that_there_are(catalog: Catalog) -> None:
    with pytest.raises(ToolFailed, match="there is: git-hub"):
        catalog.search("x", "full", 1, "gitlab", lambda tool: True)
    assert catalog.search("", "name_only", 5, "git_hub", lambda tool: True)


def test_the_best_servers_are_named_with_their_best_tools(catalog: Catalog) -> None:
    catalog.add_server("shop")
    sells = [definition(name, f"Sell: {name}.") for name in ("refund", "order", "ship", "pack")]
    catalog.replace(catalog.read("shop", sells, ""))()

    def best(query: str, limit: int = 10, server: str | None = None) -> list[dict[str, Any]]:
        return catalog.best_servers(query, limit, server, lambda tool: tool.name != "pack")

    [first] = best("open an issue", 1)
    assert first == {
        "server": "git-hub",
        "tools": 2,
        "best": ["git-hub.create-issue", "git-hub.list.issues"],
    }
    assert [item["server"] for item in best("sell a refund")] == ["shop"]
    assert best("sell a refund")[0]["tools"] == 3, "one is not for this user"
    assert best("sell", server="git_hub")[0]["server"] == "git-hub"
    assert [item["server"] for item in best("")] == ["git-hub", "shop"]
    assert best("xylophone") == []
    with pytest.raises(InvalidInput):
        best("sell", 0)
    with pytest.raises(ToolFailed, match="there is: git-hub, shop"):
        best("sell", server="gitlab")


def test_at_most_three_servers_are_named(catalog: Catalog) -> None:
    for number in range(9):
        catalog.add_server(f"shop{number}")
        tools = [definition("sell", "Sell something."), definition("other", "Other.")]
        catalog.replace(catalog.read(f"shop{number}", tools, ""))()
    assert len(catalog.best_servers("sell something", 10, None, lambda tool: True)) == MAX_SERVERS
    assert len(catalog.best_servers("", 7, None, lambda tool: True)) == 7


def test_a_tool_is_found_by_the_instructions_of_its_server(catalog: Catalog) -> None:
    catalog.add_server("db")
    told = catalog.read("db", [definition("query", "Run a statement.")], "Sales of the bakery.")
    catalog.replace(told)()
    [tool] = catalog.search("bakery", "name_only", 5, None, lambda tool: True)
    assert tool.full_name == "db.query"


def test_what_is_not_shown_is_in_no_list_and_no_file(catalog: Catalog, folder: Folder) -> None:
    assert [tool.name for tool in catalog.tools()] == ["create-issue", "list.issues"]
    assert not (folder.path / "git_hub" / "hidden.py").exists()
    assert catalog.find("git-hub.hidden")  # the policy says no, not the catalogue


def test_a_new_list_takes_the_place_of_the_old_one(catalog: Catalog, folder: Folder) -> None:
    before = catalog.generation
    catalog.replace(catalog.read("git-hub", [definition("merge")], ""))()
    assert catalog.generation > before
    assert sorted(path.name for path in (folder.path / "git_hub").iterdir()) == [
        "README.md",
        "__init__.py",
        "merge.py",
    ]
    with pytest.raises(ToolFailed):
        catalog.find("git-hub.create-issue")
    catalog.remove("git-hub")()
    assert catalog.servers == [] and not (folder.path / "git_hub").exists()


def test_two_servers_whose_names_collide_have_packages_of_their_own(catalog: Catalog) -> None:
    catalog.add_server("git_hub")
    catalog.replace(catalog.read("git_hub", [definition("merge")], ""))()
    assert catalog.find("git_hub.merge").package != catalog.find("git-hub.create-issue").package


def test_names_and_schemas_without_end_are_left_out(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    huge = definition("huge", properties={"x": {"description": "y" * MAX_SCHEMA}})
    catalog.replace(catalog.read("git-hub", [definition("n" * (MAX_NAME + 1)), huge], ""))()
    assert [tool.name for tool in catalog.tools()] == ["huge"]
    assert catalog.find("git-hub.huge").input_schema is None
    assert "its name is too long" in caplog.text


def test_hidden_characters_in_a_description_are_written_out_and_told(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.replace(
        catalog.read("git-hub", [definition("x", "Fine.\u202e\x1b[31m\U000e0041")], "")
    )()
    assert catalog.find("git-hub.x").description == "Fine.\\u202e\\U000e0041"
    assert "hides" in caplog.text and "tag characters" in caplog.text


async def test_hidden_characters_in_names_and_schemas_are_written_out_too(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {"path": {"type": "string", "description": "Where.\u202e"}}
    catalog.replace(catalog.read("git-hub", [definition("see\u202en", properties=schema)], ""))()
    tools = catalog.search("see", "full", 5, None, lambda tool: True)
    [found] = await described(tools, "full")
    assert found["name"] == "git-hub.see_n" or "\u202e" not in found["name"]
    assert found["input_schema"]["properties"]["path"]["description"] == "Where.\\u202e"
    assert catalog.find(found["name"]).name == "see\u202en"
    assert "direction controls" in caplog.text
