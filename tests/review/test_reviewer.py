"""The review of code: what is found, what happens about it, and that no text breaks it."""

import ast
import asyncio
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from divingbell import syntax
from divingbell.models import MB, Limits
from divingbell.review import reader, reviewer
from divingbell.review.estimate import Estimate
from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.settings.review import ReviewKind, ReviewRules, ReviewSettings
from tests.review.ordinary import SNIPPETS

ROOT = Path(__file__).parents[2]
LIMITS = Limits()


def review(code: str, settings: ReviewSettings | None = None, limits: Limits = LIMITS) -> Review:
    return Reviewer(settings or ReviewSettings()).review(code, limits)


def found(code: str) -> dict[ReviewKind, list[str]]:
    """The subjects of what is found, or else the words, by kind."""
    kinds: dict[ReviewKind, list[str]] = {}
    for finding in review(code).findings:
        kinds.setdefault(finding.kind, []).append(finding.subject or finding.what)
    return kinds


# Ordinary work


@pytest.mark.parametrize("name", SNIPPETS)
def test_nothing_is_said_about_ordinary_work(name: str) -> None:
    assert review(SNIPPETS[name]).action == "allow", review(SNIPPETS[name]).findings
    assert "syntax" not in found(SNIPPETS[name])


def _cells_of_docs() -> list[str]:
    """The code that examples of the docs run in sessions."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages if page.name != "review.md")
    quoted = re.findall(r"""(?:run|execute|stream)\(\s*\"\"\"(.*?)\"\"\"""", text, re.DOTALL)
    return quoted + re.findall(r"(?:run|execute|stream)\(\s*\"([^\"\n]+)\"", text)


def test_nothing_is_denied_of_what_the_docs_run_and_little_is_warned_about() -> None:
    cells = _cells_of_docs()
    assert len(cells) > 40
    told = [code for code in cells if review(code).action != "allow"]
    assert all(review(code).action == "warn" for code in told)
    # Those that show a limit, or what the sandbox has not.
    shown = (
        "while True",
        "requests",
        "urllib",
        "socket",
        "10**",
        "pip",
        "bytearray",
        "/etc",
        "/usr",
    )
    assert not [code for code in told if not any(word in code for word in shown)]


# Kinds


@pytest.mark.parametrize(
    ("code", "kind", "subject"),
    [
        ("import os\nos.system('ls')", "process", "os.system"),
        ("os.system('ls')", "process", "os.system"),
        ("import os as o\nx = o\nx.popen('ls')", "process", "os.popen"),
        ("from os import system as s", "process", "os.system"),
        ("import subprocess\nf = subprocess.run", "process", "subprocess.run"),
        ("getattr(os, 'sys' + 'tem')('ls')", "process", "os.system"),
        ("!ls -l", "process", "!"),
        ("x = 1\nfiles = !ls\nprint(files)", "process", "!"),
        ("%%bash\nls", "process", "%bash"),
        ("if True:\n    !ls \\\n      -l\nprint(1)", "process", "!"),
        ("from multiprocessing import Pool", "process", "multiprocessing.Pool"),
        ("import asyncio\nawait asyncio.create_subprocess_shell('x')", "process",
         "asyncio.create_subprocess_shell"),
        ("eval('1')", "dynamic", "eval"),
        ("list(map(eval, texts))", "dynamic", "eval"),
        ("__builtins__.exec(x)", "dynamic", "__builtins__"),
        ("import builtins as b\nb.exec('1')", "dynamic", "builtins.exec"),
        ("import importlib\nimportlib.import_module(name)", "dynamic", "importlib.import_module"),
        ("getattr(os, name)()", "dynamic", "os"),
        ("().__class__.__base__.__subclasses__()", "dynamic", "__subclasses__"),
        ("f.__globals__.get('os')", "dynamic", "__globals__"),
        ("globals()['ev' + 'al']", "dynamic", "globals"),
        ("import ctypes", "dynamic", "ctypes"),
        ("%run other.py", "dynamic", "run"),
        ("%alias sneak ls\n%sneak", "dynamic", "sneak"),
        ("%%px\nprint(1)", "dynamic", "px"),
        ("get_ipython().system('ls')", "dynamic", "get_ipython"),
        ("import requests", "network", "requests"),
        ("import urllib.request as r", "network", "urllib.request"),
        ("from urllib import request", "network", "urllib.request"),
        ("__import__('socket')", "network", "socket"),
        ("import pandas as pd\npd.read_csv('https://example.com/a.csv')", "network",
         "https://example.com/a.csv"),
        ("!pip install foo", "install", "pip"),
        ("%pip install foo", "install", "pip"),
        ("import sys, subprocess\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])",
         "install", "pip"),
        ("while True: pass", "loop", "loops without an end"),
        ("while 1:\n    for x in y:\n        break", "loop", "loops without an end"),
        ("from itertools import count\nfor n in count(): print(n)", "loop", "loops without an end"),
        ("def f():\n    return f()", "loop", "f"),
        ("def f(n):\n    x = 1 + f(n - 1)\n    return x", "loop", "f"),
        ("import os\nwhile True:\n    os.fork()", "bomb",
         "forks in a loop, and each process goes on with it"),
        ("import os\nfor _ in range(99):\n    os.fork()", "bomb",
         "forks in a loop, and each process goes on with it"),
        ("import threading\nwhile True:\n    threading.Thread(target=f).start()", "bomb",
         "threading.Thread"),
        ("!:(){ :|:& };:", "bomb", "is a fork bomb of the shell"),
        ("open('/etc/passwd', 'w')", "write", "/etc/passwd"),
        ("open('../x', mode='a')", "write", "../x"),
        ("open(f'/usr/lib/{name}', 'w')", "write", "/usr/lib/"),
        ("from pathlib import Path\nPath('/opt/x').write_text('')", "write", "/opt/x"),
        ("import shutil\nshutil.rmtree('/usr')", "write", "/usr"),
        ("import shutil\nshutil.copy('a', '/usr/a')", "write", "/usr/a"),
        ("df.to_csv('/data/x.csv')", "write", "/data/x.csv"),
        ("%%writefile /etc/x\nhello", "write", "/etc/x"),
    ],
)  # fmt: skip
def test_what_stands_out_is_found(code: str, kind: ReviewKind, subject: str) -> None:
    assert subject in found(code).get(kind, []), found(code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("for i in range(10**9): pass", "about 1,000,000,000 times"),
        ("n = 10**5\nfor i in range(n):\n    for j in range(n):\n        pass", "10,000,000,000"),
        ("[i for i in range(10**6) for j in range(10**4)]", "10,000,000,000"),
        ("for i in range(10**99): pass", "more than 10**15 times"),
    ],
)
def test_loops_are_counted(code: str, words: str) -> None:
    [finding] = review(code).findings
    assert finding.kind == "loop" and words in finding.what


@pytest.mark.parametrize(
    "code",
    [
        "'x' * 10**10",
        "10**9 * [0]",
        "bytearray(2**34)",
        "10**10**9",
        "1 << 10**9",
        "np.zeros((10**5, 10**5))",
        "import numpy\nnumpy.random.rand(10**5, 10**4)",
    ],
)
def test_sizes_are_counted(code: str) -> None:
    assert list(found(code)) == ["size"]


def test_what_a_cell_has_decides_what_is_too_much() -> None:
    code = "x = bytes(600_000_000)\nfor i in range(10**9): pass"
    assert [one.kind for one in review(code).findings] == ["size", "loop"]
    more = Limits(memory=2048 * MB, timeout=600, cpu_seconds=600)
    assert review(code, limits=more).findings == ()


def test_tools_are_named() -> None:
    code = """
from servers.shop import refund
from servers import crm as c
import servers.mail as mail
refund(1)
c.find("x")
mail.send(to="x")
servers.files.read("x")
call_mcp_tool("github.star", {})
call_mcp_tool(name)
"""
    made = review(code)
    expected = {"shop.refund", "crm.find", "mail.send", "files.read", "github.star", "?"}
    assert set(made.tools) == expected
    assert made.action == "allow" and {one.kind for one in made.findings} == {"tool"}


def test_a_name_of_the_cells_own_is_no_module() -> None:
    assert found("class os: system = print\nos = os()\nos.system('x')") == {}
    assert found("def f(subprocess):\n    return subprocess.run()") == {}


# Settings


def test_imports_are_let_in_by_a_list() -> None:
    only = ReviewSettings(imports=("pandas", "json", "os.path"))
    code = "import pandas.io.sql\nfrom json import loads\nimport os.path\nfrom servers.a import b"
    assert "import" not in {one.kind for one in review(code, only).findings}
    made = review("import os\nimport socket", only)
    assert [one.subject for one in made.of("deny")] == ["os", "socket"]
    assert "imports os, which is not allowed. Use a module that is allowed" in made.refusal
    without = ReviewSettings(imports=("!ctypes", "!multiprocessing.*"))
    made = review("import ctypes.util, json, multiprocessing.pool, multiprocessing", without)
    assert [one.subject for one in made.of("deny")] == ["ctypes.util", "multiprocessing.pool"]


def test_an_action_is_chosen_for_each_kind() -> None:
    strict = ReviewSettings(rules=ReviewRules(process="ask", dynamic="deny", network="allow"))
    made = review("!ls\nimport requests\neval('1')", strict)
    assert [(one.kind, one.action) for one in made.findings] == [
        ("process", "ask"), ("network", "allow"), ("dynamic", "deny"),
    ]  # fmt: skip
    assert made.action == "deny"
    assert "line 3 uses eval" in made.refusal and "json.loads" in made.refusal


def test_what_can_not_be_read_is_as_suspect_as_the_rules_are_strict() -> None:
    long, broken = "x = 1\n" * 20_000, "def f(:"
    assert (review(long).action, review(broken).action) == ("warn", "allow")
    strict = ReviewSettings(rules=ReviewRules(process="deny"))
    assert (review(long, strict).action, review(broken, strict).action) == ("deny", "deny")
    by_import = ReviewSettings(imports=("!ctypes",))
    assert (review(long, by_import).action, review(broken, by_import).action) == ("deny", "deny")
    chosen = ReviewSettings(rules=ReviewRules(process="deny", unread="allow", syntax="warn"))
    assert (review(long, chosen).action, review(broken, chosen).action) == ("allow", "warn")


def test_harmless_lines_do_not_hide_another_one() -> None:
    calls = "\n".join(f"servers.s.tool_{number}()" for number in range(500))
    strict = ReviewSettings(rules=ReviewRules(process="deny"))
    made = review(f"{calls}\nos.system('x')", strict)
    assert made.action == "deny" and len(made.findings) == reviewer.MAX_FINDINGS


# Any text


@example("\0")
@example("\ud800")
@example("(" * 5000)
@example("-" * 5000 + "1")
@example("a" + ".b" * 5000)
@example("x = " + "[" * 150 + "]" * 150)
@example("if x:\n pass\n" + "elif x:\n pass\n" * 2000)
@example("%%time")
@example("%%\n%%bash")
@example("x = %")
@example("=!" * 100)
@example("\\\n!\\\n\\")
@example(" " * 30_000 + "!")
@example("a" * 30_000 + "?x")
@example("%timeit " + "-n" * 15_000)
@example("f'{" * 100)
@example("9" * 5000)
@example("1+" * 15_000 + "1")
@given(st.text() | st.text(alphabet="%!?=\\\n :()[]'\"x1fori.*-+e"))
def test_no_text_breaks_it(text: str) -> None:
    made = review(text)
    assert made.action in ("allow", "warn")
    assert all("\n" not in str(finding) for finding in made.findings)


@given(
    st.lists(
        st.sampled_from(sorted(SNIPPETS)) | st.sampled_from(("!ls", "%%bash", "await x", "x?")),
        max_size=4,
    )
)
def test_no_mixture_of_cells_breaks_it(names: list[str]) -> None:
    review("\n".join(SNIPPETS.get(name, name) for name in names))


CONSTANTS = ("1.5", "2j", "...", "None", "b''", "(10**400)", "f'{1.5:.2f}'", "-1", "{**{}, 1: ...}")


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    x = [{}, f]\n    return f({})\n",
        "while 1.5:\n    y = {}; {}\n    global z\n",
        "for i in range({0}, 2 * {0}):\n    ({0}).real; a[{0}:...]\n    break\n",
        "match x:\n    case {{'a': None, **rest}} if {}: pass\n    case C(a=1.5): {}\n",
    ],
)
def test_values_of_every_kind_are_passed_over(code: str, constant: str) -> None:
    """Nodes hold floats, dots and texts beside other nodes, and lists of all these."""
    written = code.format(constant, constant)
    assert "unread" not in found(written) and "syntax" not in found(written)


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        ("while True:\n    for x in y:\n        break\n", True),
        ("while True:\n    for x in y:\n        break\n    else:\n        break\n", True),
        ("while True:\n    for x in y:\n        raise E\n", False),
        ("while True:\n    def f():\n        return 1\n", True),
        ("while True:\n    class C:\n        break_ = 1\n", True),
        ("while True:\n    with a as b:\n        if c: break\n", False),
        ("while True:\n    try: f()\n    except E: sys.exit()\n", False),
        ("while True:\n    x = lambda: (yield)\n", True),
        ("import itertools\nfor n in itertools.count():\n    print(n)\n", True),
        ("import itertools\nfor n in itertools.count():\n    if n > 3: break\n", False),
        ("for n in range(10**12):\n    pass\n", True),
        ("for n in range(10**12):\n    if n > 3: break\n", False),
        ("for n in range(10**12):\n    while n: break\n", True),
    ],
)
def test_what_ends_a_loop_is_told_from_what_does_not(code: str, is_told: bool) -> None:
    assert ("loop" in found(code)) == is_told


def test_the_work_that_code_can_cause_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = "".join(f"{' ' * depth}while 1:\n" for depth in range(90))
    code = nested + " " * 90 + "0;" * 12_000 + "print()"
    looked_into = 0

    def counting(parts: Callable[[ast.AST], tuple[Any, ...]]) -> object:
        def counted(node: ast.AST) -> tuple[Any, ...]:
            nonlocal looked_into
            looked_into += 1
            return parts(node)

        return counted

    monkeypatch.setattr(
        reader, "PARTS", {kind: counting(parts) for kind, parts in syntax.PARTS.items()}
    )
    assert review(code).action == "warn"
    # Each statement twice: once for what ends a loop, once for the rest.
    assert 24_000 < looked_into < 24_500
    counts: list[int] = []
    estimated = Estimate.size

    def size(self: Estimate, node: ast.expr) -> float:
        found = estimated(self, node)
        counts.append(self.steps_left)
        return found

    monkeypatch.setattr(Estimate, "size", size)
    review("2**" * 900 + "2\n" + "\n".join("(2**2)**2" for _ in range(2000)))
    assert min(counts) == 0 and len(counts) > 4000


def test_warnings_about_the_code_stay_out_of_the_host() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error")
        assert review("x = '\\d'").findings == ()
        assert review("y = '\\d'").findings == ()
        with pytest.raises(UserWarning):
            warnings.warn("of the host", stacklevel=1)
    assert not told


async def test_long_code_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    parse = syntax.parsed

    def parsed(code: str) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        return parse(code)

    monkeypatch.setattr(reviewer, "parsed", parsed)
    charged: list[float] = []
    for code in ("1 + 1", "x = 1\n" * 1000):
        async with asyncio.timeout(60):
            await Reviewer(ReviewSettings()).look(code, LIMITS, 30.0, charged.append)
    assert threads == [True, False] and len(charged) == 2
