"""Syntax: code that the host parses once for all who read it."""

import ast

import pytest

from divingbell import syntax

CODE = """
import pandas as pd
from servers.crm import find as look
def total(rows, *, rate=1.5, **more):
    global count
    match rows:
        case {"name": str(name), **rest} if name:
            return f"{name!r}: {rate:>{len(rest)}}"
    return [each for each in rows if not each < 3 and -each] or {**more, "a": (1, 2.5, None, ...)}
class Shop: open: bool = True
with open("x") as (file, *others): x = y = file[1:2, ::3]
"""


def test_the_nodes_of_a_tree_come_in_the_order_of_ast_walk() -> None:
    tree = syntax.parsed(CODE)
    expected = [node for node in ast.walk(tree) if type(node) not in syntax.BARE]
    assert syntax.nodes(tree) == expected


def test_code_is_parsed_once_for_all_who_read_it_but_long_code_is_not_kept() -> None:
    assert syntax.parsed(CODE) is syntax.parsed(CODE)
    long = "x = 1\n" * syntax.SHORT
    assert syntax.parsed(long) is not syntax.parsed(long)


def test_what_is_no_python_is_told_each_time() -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError):
            syntax.parsed("1 +")
