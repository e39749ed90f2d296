"""What a piece of code needs, told from the names in it."""

import pytest

from divingbell.session.needs import MAX_SCANNED, Needs
from divingbell.settings.servers import Server, UnusableServer

PRELOAD = ("numpy", "pandas", "matplotlib.pyplot")
SERVERS = (
    Server("shop", command="x"),
    Server("my-notes", command="x"),
    UnusableServer("lost", "why"),
)


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("1 + 1", ()),
        ("import pandas as pd", ("pandas",)),
        ("from matplotlib import pyplot as plt", ("matplotlib.pyplot",)),
        ("import numpy, pandas.io.sql", ("numpy", "pandas")),
        ("%timeit __import__('numpy')", ("numpy",)),
        ("if True:\n  this is no Python, but names pandas", ("pandas",)),
    ],
)
def test_modules_are_those_that_the_code_names(code: str, modules: tuple[str, ...]) -> None:
    assert Needs.of(code, PRELOAD, ()).modules == modules


@pytest.mark.parametrize(
    ("code", "servers"),
    [
        ("1 + 1", ()),
        ("from servers.shop import refund", ("shop",)),
        ("from servers import my_notes", ("my-notes",)),
        ("call_mcp_tool('my-notes.add', {})", ("my-notes",)),
        ("call_mcp_tool('mcp__shop__refund')", ("shop",)),
        ("search_tools('refunds')", ("shop", "my-notes", "lost")),
        ("print(list_mcp_tools())", ("shop", "my-notes", "lost")),
        ("!cat /servers/*/README.md", ("shop", "my-notes", "lost")),
    ],
)
def test_servers_are_those_that_the_code_names_or_all_it_may_mean(
    code: str, servers: tuple[str, ...]
) -> None:
    assert Needs.of(code, (), SERVERS).servers == servers


def test_very_long_code_is_not_looked_through_and_gets_everything() -> None:
    needs = Needs.of("#" * (MAX_SCANNED + 1), PRELOAD, SERVERS)
    assert needs == Needs(PRELOAD, ("shop", "my-notes", "lost"))
