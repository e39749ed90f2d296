"""What a model reads about Divingbell: in tokens, in bytes, and whether it is so."""

import hashlib

from divingbell.host.requirements import at_hand
from divingbell.journal import tokens
from divingbell.settings.servers import Server, UnusableServer
from divingbell.surfaces.mcp import definitions
from divingbell.surfaces.mcp.definitions import Texts, configured, texts

ALONE, WITH_ONE, WITH_TEN = 400, 500, 540
"""Tokens; the promise is 1,200."""
SKILLS = 70
"""Tokens that skills add."""
TEN = (
    "github", "slack", "linear", "notion", "postgres", "filesystem", "fetch", "memory", "time",
    "google_maps",
)  # fmt: skip


def read(made: Texts) -> int:
    count = tokens.measure(made.as_read())
    assert not count.estimated
    return count.tokens


def test_the_whole_surface_fits_its_budget() -> None:
    packages = at_hand(())
    assert read(texts((), packages)) <= ALONE
    assert read(texts(["github"], packages)) <= WITH_ONE
    assert read(texts(TEN, packages)) <= WITH_TEN


def test_tokens_are_spoken_of_where_there_are_some_and_in_few_words() -> None:
    plain = texts(TEN, at_hand(()))
    assert texts(TEN, at_hand(()), privacy="off") == plain and "shown" not in plain.instructions
    for privacy in ("secrets", "personal"):
        made = texts(TEN, at_hand(()), privacy=privacy)
        assert read(made) - read(plain) <= 70
        assert made.instructions.startswith(plain.instructions) and made.tools == plain.tools


def test_skills_are_spoken_of_where_there_are_some() -> None:
    packages = at_hand(())
    assert "skill" not in texts(TEN, packages).instructions.lower()
    assert "`from skills import NAME`" in texts(TEN, packages, skills=True).instructions
    assert read(texts(TEN, packages, skills=True)) <= WITH_TEN + SKILLS


def test_the_surface_is_the_same_in_every_process_and_for_every_order_of_servers() -> None:
    """Caches keep it only as long as no byte changes: whoever changes it, does so on purpose."""
    made = [texts(names, at_hand(["polars"])).as_read() for names in (TEN, TEN[::-1], set(TEN))]
    assert made[0] == made[1] == made[2]
    digest = hashlib.sha256(made[0].encode()).hexdigest()
    assert digest.startswith("27920913830f06d9")


def test_every_tool_and_parameter_is_described_or_speaks_for_itself() -> None:
    for tool in texts().tools:
        assert tool.description
        assert set(tool.input_schema.get("required", [])) <= set(tool.input_schema["properties"])


def test_servers_and_packages_are_named_where_any_client_shows_them() -> None:
    made = texts(["github", "slack"], at_hand(["polars>=1", "scikit-learn"]))
    execute, search, *_ = made.tools
    assert "Servers: github, slack\n" in made.instructions
    assert "github, slack" in str(search.description)
    for words in (made.instructions, execute.description):
        assert "pandas, numpy, matplotlib, duckdb, openpyxl, polars, scikit-learn" in str(words)


def test_without_servers_none_are_spoken_of() -> None:
    made = texts((), at_hand(()))
    assert "servers" not in made.instructions.lower() and "no network" in made.instructions
    assert "No server is configured" in str(made.tools[1].description)


def test_any_number_of_names_of_any_length_has_an_end() -> None:
    longest = [f"{number:04}{'x' * 60}" for number in range(5000)]
    many = [f"s{number:04}" for number in range(5000)]
    for names in (longest, many):
        made = texts(names, names)
        assert len(made.as_read()) < 4 * definitions.MAX_NAMED + 4000
        assert made.instructions.count(" more") == 2
    assert f"and {5000 - definitions.MAX_NAMES} more" in texts(many).instructions


def test_servers_are_known_from_the_settings_before_any_has_answered() -> None:
    entries = [
        Server("git-hub", command="nothing"),
        UnusableServer("broken", "its entry can't be used"),
        Server("git_hub", command="nothing"),
        Server("off", command="nothing", enabled=False),
    ]
    first, second = configured(entries)
    assert first == "git_hub" and second.startswith("git_hub_")
