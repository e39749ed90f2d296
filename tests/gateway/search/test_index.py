"""Search by words, on the tool lists of real servers and on hostile ones."""

import functools
import random
from string import ascii_lowercase
from typing import Any

import pytest

from divingbell.gateway.search import entry as index_entry
from divingbell.gateway.search import section as sections
from divingbell.gateway.search.entry import IndexEntry
from divingbell.gateway.search.index import MAX_PHRASINGS, MAX_QUERY_WORDS, Index, phrasings
from divingbell.gateway.search.section import Section
from divingbell.gateway.search.stemming import split_name, stem, stems
from divingbell.tool import Tool
from tests.tool_lists import search_practice, search_queries, tool_lists

RIGHT_IN_FIVE = 0.65


def make(server: str, name: str, description: str = "", **more: object) -> Tool:
    return Tool(server, name, server, name, description, **more)  # type: ignore[arg-type]


@functools.cache
def real_tools() -> list[Tool]:
    return [
        make(
            server,
            tool["name"],
            tool.get("description") or "",
            input_schema=tool.get("inputSchema"),
            output_schema=tool.get("outputSchema"),
            annotations=tool.get("annotations"),
        )
        for server, tools in tool_lists().items()
        for tool in tools
    ]


@functools.cache
def real_index() -> Index:
    return Index(real_tools())


def found(index: Index, query: str, limit: int = 5, server: str | None = None) -> list[str]:
    return [tool.full_name for tool in index.search(query, limit, server)]


def small_index() -> Index:
    return Index(
        [
            make("github", "list_pull_requests", "List pull requests in a repository."),
            make("github", "create_issue", "Create a new issue."),
            make("github", "delete_file", "Delete a file from a repository."),
            make("linear", "linear_createIssue", "Create a new issue in Linear."),
            make("slack", "slack_post_message", "Post a new message to a Slack channel."),
            make("crm", "getCustomerOrders", "All orders of one customer."),
        ]
    )


def test_a_right_tool_is_among_the_first_five_of_two_thousand_often_enough() -> None:
    queries = [*search_queries(), *search_practice()]
    right = [
        query
        for query in queries
        if set(found(real_index(), query["query"])) & set(query["answers"])
    ]
    assert len(right) / len(queries) >= RIGHT_IN_FIVE


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("find open pull requests", "github.search_pull_requests"),
        ("list pull requests on github", "github.list_pull_requests"),
        ("what time is it in Tokyo", "time.get_current_time"),
        ("merge a pull request on GitHub", "github.merge_pull_request"),
        ("post a message to a slack channel", "slack.slack_post_message"),
        ("get rid of a neon project", "neon.delete_project"),
    ],
)
def test_a_question_in_plain_words_finds_the_tool(query: str, answer: str) -> None:
    assert answer in found(real_index(), query)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("customer orders", "crm.getCustomerOrders"),
        ("getCustomerOrders", "crm.getCustomerOrders"),
        ("slack_post_message", "slack.slack_post_message"),
        ("remove files", "github.delete_file"),
        ("show PRs", "github.list_pull_requests"),
        ("pullrequests", "github.list_pull_requests"),
        ("chanel mesage", "slack.slack_post_message"),
        ("linear ticket", "linear.linear_createIssue"),
    ],
)
def test_names_are_split_and_synonyms_and_slips_understood(query: str, answer: str) -> None:
    assert found(small_index(), query)[0] == answer


def test_the_server_that_a_query_names_comes_first() -> None:
    assert found(small_index(), "new issue in linear")[0] == "linear.linear_createIssue"
    assert found(small_index(), "new issue in GitHub")[0] == "github.create_issue"


def test_a_server_can_be_asked_for() -> None:
    index = small_index()
    assert found(index, "create issue", server="linear") == ["linear.linear_createIssue"]
    assert found(index, "create issue", server="nobody") == []
    assert found(index, "zebra", server="slack") == ["slack.slack_post_message"]


def test_an_empty_query_lists_by_name_and_an_unknown_word_finds_nothing() -> None:
    index = small_index()
    for query in ("", "  ", "the", "?!"):
        assert found(index, query, 3) == [
            "crm.getCustomerOrders",
            "github.create_issue",
            "github.delete_file",
        ]
    assert found(index, "xylophone") == []
    assert found(index, "issue", 0) == found(index, "issue", -3) == []


def test_a_word_that_every_tool_of_a_small_server_has_still_finds_them() -> None:
    index = Index([make("shop", "list_orders", "Orders."), make("shop", "cancel", "Orders.")])
    assert found(index, "orders") == ["shop.list_orders", "shop.cancel"]


def test_several_phrasings_find_what_one_of_them_would_not() -> None:
    index = small_index()
    assert found(index, "xylophone | customer orders")[0] == "crm.getCustomerOrders"
    assert found(index, "|| post message |", 1) == found(index, "post message", 1)
    assert found(index, "|", 3) == found(index, "", 3)
    assert phrasings("a|b | |c") == ["a", "b", "c"]
    assert len(phrasings("x|" * 100)) == MAX_PHRASINGS


def test_the_words_that_are_looked_at_are_no_more_for_several_phrasings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    expanded = Index._expanded

    def counting(self: Index, asked: list[str], synonym: float) -> object:
        looked_at.append(len(asked))
        return expanded(self, asked, synonym)

    monkeypatch.setattr(Index, "_expanded", counting)
    found(small_index(), "|".join(["issue " * 30] * MAX_PHRASINGS))
    assert len(looked_at) == MAX_PHRASINGS
    assert sum(looked_at) <= MAX_QUERY_WORDS


def test_the_best_servers_are_those_of_the_best_tools() -> None:
    index = small_index()
    assert index.best_servers("create a new issue", 3)[:2] == ["github", "linear"]
    assert index.best_servers("create a new issue", 1) == ["github"]
    assert index.best_servers("message in a channel", 3) == ["slack"]
    assert index.best_servers("xylophone", 3) == []
    assert index.best_servers("", 2) == ["crm", "github"]
    others = index.best_servers("create a new issue", 3, lambda tool: tool.server != "github")
    assert others[0] == "linear"
    assert "github" not in others


def test_the_best_servers_are_found_past_many_tools_that_are_not_wanted() -> None:
    crowd = [make("crowd", f"create_issue_{number}", "Create an issue.") for number in range(300)]
    others = [make("others", f"other_{number}") for number in range(900)]
    index = Index([*crowd, *others, make("last", "issue", "Something about an issue.")])
    wanted = {"crowd.create_issue_7", "last.issue"}.__contains__
    assert index.best_servers("create issue", 3, lambda tool: wanted(tool.full_name)) == [
        "crowd",
        "last",
    ]


def test_a_tool_is_found_by_what_its_server_says_of_itself_and_by_what_it_returns() -> None:
    index = Index()
    purpose = "The ledger of our bakery."
    index.replace(Section("db", [IndexEntry(make("db", "query", "Run a statement."), purpose)]))
    answer = {"properties": {"humidity": {"type": "number"}}}
    index.replace(
        Section("sky", [IndexEntry(make("sky", "now", "Measure.", output_schema=answer))])
    )
    assert found(index, "bakery ledger", 1) == ["db.query"]
    assert found(index, "humidity", 1) == ["sky.now"]
    # It is cut, and it can't hold up anybody.
    long = IndexEntry(make("db", "query"), "word " * 10**6 + "zebra")
    assert "zebra" not in long.terms


def test_the_order_is_the_same_each_time_and_whatever_the_order_of_the_servers() -> None:
    tools = real_tools()
    backwards = Index(reversed(tools))
    for query in ("list issues", "get the status of a deployment", "create"):
        expected = found(real_index(), query, 20)
        assert found(real_index(), query, 20) == expected
        assert found(backwards, query, 20) == expected


def test_a_server_is_replaced_and_removed_without_a_trace() -> None:
    index = small_index()
    index.replace(
        Section("slack", [IndexEntry(make("slack", "archive_channel", "Archive a channel."))])
    )
    assert found(index, "post message", server="slack") == ["slack.archive_channel"]
    index.remove("slack")
    index.remove("slack")
    assert found(index, "slack channel") == []
    assert len(index) == 5
    for server in ("github", "linear", "crm"):
        index.remove(server)
    assert len(index) == 0
    assert not index._postings
    assert found(index, "") == found(index, "issue") == []


def test_replacing_gives_the_same_as_building_anew() -> None:
    tools = [tool for tool in real_tools() if tool.server in ("git", "github", "slack", "time")]
    index = Index(tools)
    index.replace(Section("git", [IndexEntry(make("git", "nothing"))]))
    index.replace(Section("git", [IndexEntry(tool) for tool in tools if tool.server == "git"]))
    for query in ("show the diff", "branches", "message"):
        assert found(index, query, 10) == found(Index(tools), query, 10)


@pytest.mark.parametrize(
    "query",
    [
        '"issue" OR *',
        "NEAR(issue file, 5) AND NOT name:create",
        "issue\x00; DROP TABLE tools;--",
        "issue " * 200_000,
        "a" * 1_000_000,
        "aB" * 500_000,
        "🙂" * 1000 + " ﷽ " + "\ud800\udfff \u202eeussi",
        "(" * 5000,
        "\n\t\x1b[31m",
        "issueissueissueissueissueissueissueissue" * 20,
        "İıßﬁ ǅ ١٢٣ ²³",
    ],
)
def test_any_text_is_a_query(query: str) -> None:
    assert len(index_answers := small_index().search(query, 5)) <= 5
    assert all(isinstance(tool, Tool) for tool in index_answers)
    small_index().search(query, 5, query[:100])


def test_hostile_tools_are_indexed_like_others_and_harm_nobody() -> None:
    deep: dict[str, object] = {"type": "object"}
    deep["properties"] = {"self": deep}
    hostile = [
        make("evil", "", ""),
        make("evil", "../../x", "issue " * 1_000_000),
        make("evil", "x(): import os #", "\x00\x1b]0;\ud800", input_schema={"properties": []}),
        make("evil", "y" * 1_000_000, "a", input_schema=deep, annotations={"title": 7}),
        make("evil", "z", "", input_schema={"properties": {"a": None, "b": {"enum": "no"}}}),
        make("evil", "w", "", input_schema={"properties": {str(n): {} for n in range(100_000)}}),
        make(
            "evil",
            "v",
            "",
            input_schema={"properties": {"a": {"enum": [None, {}, "q" * 10**6], "description": 3}}},
            annotations={"readOnlyHint": "yes"},
        ),
    ]
    index = small_index()
    index.replace(Section("evil", map(IndexEntry, hostile)))
    assert len(index) == 6 + len(hostile)
    # A description that says a word a million times does not win by that.
    assert found(index, "create a github issue")[0] == "github.create_issue"
    assert found(index, "", 100, "evil") == sorted(tool.full_name for tool in hostile)
    index.remove("evil")
    assert found(index, "create issue") == found(small_index(), "create issue")


def test_words_are_cut_to_what_their_forms_share() -> None:
    assert stems("linear_createIssue, HTTPServer and get-user") == stems(
        "linear create issue http server get user"
    )
    for one, other in (
        ("aggregates", "aggregation"),
        ("queries", "query"),
        ("deleted", "delete"),
        ("merging", "merge"),
        ("branches", "branch"),
        ("deployments", "deploy"),
    ):
        assert stem(one) == stem(other)
    assert split_name("linear_createIssue") == "linear create Issue"


def gibberish(length: int, seed: int) -> str:
    """Words of four letters that hardly come twice."""
    letters = random.Random(seed)
    return " ".join("".join(letters.choices(ascii_lowercase, k=4)) for _ in range(length // 5))


def test_so_many_terms_of_a_tool_are_read_and_no_more_whatever_it_says() -> None:
    values = {"enum": [gibberish(200, number) for number in range(20)]}
    schema = {"properties": {f"p{number}": values for number in range(100)}}
    entry = IndexEntry(make("evil", "find_zebra", gibberish(4000, 1), input_schema=schema))
    assert len(entry.terms) == index_entry.MAX_TERMS
    assert {"find", "zebra"} <= set(entry.terms)


def test_so_much_of_a_tool_is_read_and_no_more_however_many_values_it_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def noted(text: str) -> list[str]:
        read.append(text)
        return stems(text)

    monkeypatch.setattr(index_entry, "stems", noted)
    values = {"description": "d" * 300, "enum": ["v" * 200] * 20}
    schema = {"properties": {f"p{number}": values for number in range(100)}}
    IndexEntry(make("evil", "find", "x" * 4000, input_schema=schema, output_schema=schema))
    of_names_and_server = len("find") + len("evil")
    assert sum(map(len, read)) == index_entry.MAX_TEXT + of_names_and_server


def test_taking_a_server_in_costs_a_step_for_each_of_its_terms_which_have_a_limit() -> None:
    """Its last tool is still found by its name, and it leaves nothing behind."""

    class Counting(dict[str, Any]):
        steps = 0

        def setdefault(self, key: str, default: Any = None) -> Any:
            self.steps += 1
            return super().setdefault(key, default)

    index = small_index()
    before = set(index._postings)
    tools = [make("evil", f"t{number}", gibberish(4000, number)) for number in range(200)]
    section = Section("evil", map(IndexEntry, [*tools, make("evil", "giraffe")]))
    index._postings = counting = Counting(index._postings)
    index.replace(section)
    assert (
        counting.steps <= sections.MAX_TERMS < sum(len(e.terms) for e in section.entries.values())
    )
    assert found(index, "giraffe", 1) == ["evil.giraffe"]
    index.remove("evil")
    assert set(index._postings) == before
