"""What a session is opened with: an environment, labels, patience; and how it is found again."""

import logging
import math
import os
import signal
from typing import Any

import pytest

from divingbell import ConfigError, Divingbell, InvalidInput, SessionClosed
from divingbell.session.options import (
    MAX_ENVIRONMENT,
    MAX_LABEL,
    MAX_LABEL_VALUE,
    MAX_LABELS,
    MAX_NAME,
    MAX_VARIABLES,
    checked,
)
from tests.waiting import until

TOKEN = "t0ken-that-nobody-may-print"
READ = "import os; os.environ.get('TOKEN')"

# The environment


async def test_the_environment_is_there_from_the_first_cell_on(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN, "EMPTY": "", "NICODE": "ü 深 \n"}) as session:
        assert (await session.run(READ)).value == TOKEN
        assert (await session.run("[os.environ['EMPTY'], os.environ['NICODE']]")).value == [
            "",
            "ü 深 \n",
        ]
        shown = await session.run("import subprocess; subprocess.getoutput('echo $TOKEN')")
        assert shown.value == TOKEN
        assert (await session.run("'PATH' in os.environ and 'HOME' in os.environ")).value is True


async def test_it_is_there_after_a_reset(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN}) as session:
        await session.run("import os; del os.environ['TOKEN']")
        await session.reset()
        assert (await session.run(READ)).value == TOKEN


async def test_it_is_there_where_the_interpreter_was_replaced(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN}) as session:
        result = await session.run("import os; os._exit(1)")
        assert (result.status, result.state) == ("killed", "fresh")
        assert (await session.run(READ)).value == TOKEN


async def test_a_copy_keeps_what_the_code_has_made_of_it(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN}) as session:
        await session.run("import os; os.environ['TOKEN'] = 'changed'")
        await until(lambda: session.copied_cell == 1, "a copy waits")
        result = await session.run("os._exit(1)")
        assert result.state == "rewound"
        assert (await session.run(READ)).value == "changed"


async def test_it_is_there_where_the_sandbox_was_renewed(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN}) as session:
        await session.run("1")
        lost = session._handle.sandbox
        os.kill(lost.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        await until(lambda: not session.alive, "the loss is noticed")
        result = await session.run(READ)
        assert (result.value, result.state) == (TOKEN, "fresh")
        assert session._handle.sandbox is not lost


async def test_nobody_else_has_it(bell: Divingbell) -> None:
    async with bell.session(env={"TOKEN": TOKEN}) as session, bell.session() as other:
        await session.run("1")
        assert (await other.run(READ)).value is None
        assert TOKEN not in os.environ.values()


async def test_one_execution_may_have_it(bell: Divingbell) -> None:
    assert (await bell.execute(READ, env={"TOKEN": TOKEN})).value == TOKEN


async def test_what_is_changed_afterwards_is_not_what_was_given(bell: Divingbell) -> None:
    env, labels = {"TOKEN": TOKEN}, {"team": "a"}
    async with bell.session(env=env, labels=labels) as session:
        env["TOKEN"] = labels["team"] = "changed"
        await session.reset()
        assert (await session.run(READ)).value == TOKEN
        assert session.labels == {"team": "a"}
        with pytest.raises(TypeError):
            session.labels["team"] = "b"  # type: ignore[index]


async def test_no_value_is_in_a_log_or_a_repr(
    bell: Divingbell, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with bell.session(env={"TOKEN": TOKEN}) as session:
            await session.run("1")
            await session.reset()
            handle = session._handle
            shown = (session, handle, handle.options, bell, session._repr_html_())
            assert TOKEN not in repr(shown) + bell._repr_html_()
    records = "".join(repr(vars(record)) for record in caplog.records)
    assert "cell 1" in caplog.text and TOKEN not in caplog.text + records


SECRET = "hidden\0value"


@pytest.mark.parametrize(
    "env",
    [
        [("A", "b")],
        "A=b",
        {"": "a"},
        {"1A": "a"},
        {"A=B": "a"},
        {"A\nB": "a"},
        {"Ä": "a"},
        {"A\0": "a"},
        {1: "a"},
        {None: "a"},
        {"A": 1},
        {"A": None},
        {"A": b"a"},
        {"A": SECRET},
        {"A": "hidden\ud800"},
        {"A": "hidden" * MAX_ENVIRONMENT},
        {"A" * (MAX_ENVIRONMENT + 1): "hidden"},
        {f"A{number}": "hidden" for number in range(MAX_VARIABLES + 1)},
    ],
    ids=lambda env: repr(env)[:30],
)
async def test_a_bad_environment_is_refused_without_a_value(bell: Divingbell, env: Any) -> None:
    before = len(bell.sessions())
    with pytest.raises(InvalidInput, match="env") as caught:
        await bell.open(env=env)
    assert "hidden" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert len(bell.sessions()) == before


async def test_the_largest_environment_arrives(bell: Divingbell) -> None:
    size = MAX_ENVIRONMENT // MAX_VARIABLES
    env = {f"Q{number:03}": "x" * (size - 4) for number in range(MAX_VARIABLES)}
    async with bell.session(env=env) as session:
        code = "import os; sum(len(value) for name, value in os.environ.items() if name[0] == 'Q')"
        assert (await session.run(code)).value == (size - 4) * MAX_VARIABLES
        assert (await session.run("!true\n_exit_code")).value == 0


# Labels and names


async def test_sessions_are_found_by_user_and_labels(bell: Divingbell) -> None:
    async with (
        bell.session("a", user="found-1", labels={"team": "blue", "kind": "report"}),
        bell.session("b", user="found-1", labels={"team": "red"}),
        bell.session("c", user="found-2", labels={"team": "blue"}),
    ):

        def ids(**wanted: Any) -> set[str]:
            return {session.id for session in bell.sessions(**wanted)} & {"a", "b", "c"}

        assert ids() == {"a", "b", "c"}
        assert ids(user="found-1") == {"a", "b"}
        assert ids(labels={"team": "blue"}) == {"a", "c"}
        assert ids(labels={"team": "blue", "kind": "report"}) == {"a"}
        assert ids(user="found-2", labels={"team": "red"}) == set()
        assert ids(labels={"team": ""}) == ids(labels={"other": "blue"}) == set()
        assert ids(labels={}) == {"a", "b", "c"}


async def test_one_is_found_by_its_id_without_joining_it(bell: Divingbell) -> None:
    async with bell.session("mine", user="ada") as session:
        found = bell.get("mine", user="ada")
        assert found is not None and found.key == session.key
        assert bell.get("mine", user="bob") is None
        assert bell.get("mine") is None
        assert bell.get("other", user="ada") is None
    assert bell.get("mine", user="ada") is None
    assert bell.get("mine", user="ada") is None  # looking has not made it


async def test_joining_changes_nothing(bell: Divingbell) -> None:
    async with (
        bell.session("joined", labels={"a": "b"}, env={"TOKEN": "first"}, timeout=9) as first,
        bell.session("joined", labels={"c": "d"}, env={"TOKEN": "other"}, timeout=8) as same,
    ):
        assert same.key == first.key
        assert (same.labels, same.limits.timeout) == ({"a": "b"}, 9)
        assert (await same.run(READ)).value == "first"


async def test_what_has_no_effect_on_a_session_that_is_joined_is_told_once(
    bell: Divingbell, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"labels": {"a": "b"}, "env": {"TOKEN": TOKEN}, "timeout": 9}
    with caplog.at_level(logging.WARNING, "divingbell"):
        async with bell.session("joined", **given) as first:
            same: dict[str, Any] = {"user": None, "memory": None, "idle_timeout": None}
            for fitting in (given, same):
                async with bell.session("joined", **fitting):
                    assert not caplog.records
            for _ in range(2):
                other = {"env": {"TOKEN": "x" + TOKEN}, "memory": "64MB", "timeout": 9.0}
                async with bell.session("joined", idle_timeout=3, **other):  # type: ignore[arg-type]
                    pass
            with pytest.raises(ConfigError):
                await bell.open("joined", memory="a lot")
    [record] = caplog.records
    assert record.getMessage().endswith("only opening it could set: memory, env, idle_timeout")
    assert record.__dict__["bell_session"] == first.key
    assert TOKEN not in repr(vars(record))


@pytest.mark.parametrize("name", ["a", "ü 深 ✓", "a/b:c d", "x" * MAX_NAME, "👩\u200d💻", "' OR 1"])
async def test_names_may_be_any_text(bell: Divingbell, name: str) -> None:
    async with bell.session(name, user=name, labels={name[:MAX_LABEL]: name[:20]}) as session:
        assert (session.id, session.user) == (name, name)
        assert bell.get(name, user=name) is not None
        assert len(bell.sessions(user=name, labels={name[:MAX_LABEL]: name[:20]})) == 1


BAD_NAMES: list[Any] = [
    "", "a\nb", "a\rb", "\x1b[31m", "\0", "\x9b", "a\u2028b", "\ud800", "x" * (MAX_NAME + 1),
    1, 1.0, True, b"a", ["a"], object(),
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: repr(name)[:20])
async def test_other_names_are_refused(bell: Divingbell, name: Any) -> None:
    before = len(bell.sessions())
    for attempt in ({"id": name}, {"user": name}):
        with pytest.raises(InvalidInput, match=next(iter(attempt))) as caught:
            await bell.open(**attempt)
        assert len(str(caught.value)) < 300 and "\x1b" not in str(caught.value)
        with pytest.raises(InvalidInput):
            bell.get(**{"id": "a", **attempt})
    with pytest.raises(InvalidInput):
        bell.sessions(user=name)
    assert len(bell.sessions()) == before


@pytest.mark.parametrize(
    "labels",
    [
        "a=b",
        [("a", "b")],
        {"": "b"},
        {1: "b"},
        {"a": 1},
        {"a": None},
        {"a": "line\nbreak"},
        {"\x1b": "b"},
        {"a": "\ud800"},
        {"a" * (MAX_LABEL + 1): "b"},
        {"a": "b" * (MAX_LABEL_VALUE + 1)},
        {str(number): "b" for number in range(MAX_LABELS + 1)},
    ],
    ids=lambda labels: repr(labels)[:30],
)
async def test_bad_labels_are_refused(bell: Divingbell, labels: Any) -> None:
    with pytest.raises(InvalidInput, match="label"):
        await bell.open(labels=labels)
    with pytest.raises(InvalidInput, match="label"):
        bell.sessions(labels=labels)


def test_an_empty_label_is_one() -> None:
    assert checked(None, {"urgent": ""}, None).labels == {"urgent": ""}


# Patience


async def test_a_session_ends_by_its_own_patience(bell: Divingbell) -> None:
    async with bell.session("short", idle_timeout=0.05) as short, bell.session() as usual:
        await until(lambda: short.closed, "it ends by itself")
        assert not usual.closed
        with pytest.raises(SessionClosed, match=r"idle for 0\.05 s"):
            short.touch()


async def test_a_session_may_never_end_by_being_idle() -> None:
    async with Divingbell(pool=0, preload=(), idle_timeout=0.05) as bell:
        kept, other = await bell.open(idle_timeout=math.inf), await bell.open()
        await until(lambda: other.closed, "the other ends")
        assert not kept.closed
        assert (await kept.run("1")).value == 1


async def test_touching_counts_as_use(bell: Divingbell) -> None:
    async with (
        bell.session(idle_timeout=60) as touched,
        bell.session(idle_timeout=60) as forgotten,
    ):
        for session in (touched, forgotten):
            session._handle.last_used -= 100
        touched.touch()
        await until(lambda: forgotten.closed, "it ends by itself")
        assert not touched.closed


@pytest.mark.parametrize("seconds", [0, -1, math.nan, -math.inf, "5", True, [], b"1"], ids=repr)
async def test_bad_patience_is_refused(bell: Divingbell, seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="idle_timeout"):
        await bell.open(idle_timeout=seconds)
