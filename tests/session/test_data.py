"""Variables that a program sets and gets: all kinds of values, limits, and hostile code."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, DivingbellError, InvalidInput, Session, SessionClosed
from divingbell.session import data
from divingbell.shares import weight
from divingbell_inside import columns, parcels
from tests import libraries
from tests.waiting import until, until_there

LARGE = ["x" * 100] * 20_000  # more than travels without a file


@pytest.fixture
async def roomy(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session(memory="2GB", disk="1GB") as session:
        yield session


async def _is_clean_and_usable(session: Session) -> None:
    assert not [file.path for file in await session.files.list()]
    assert (await session.run("20 + 22")).value == 42


@pytest.mark.parametrize(
    "value", [None, 5, "é", b"\x00", [1, (2,)], {1: {2, 3}}, LARGE, "y" * 3_000_000], ids=type
)
async def test_plain_data_goes_in_and_comes_out(session: Session, value: Any) -> None:
    await session.set("value", value)
    assert await session.get("value") == value
    assert (await session.run("type(value).__name__")).value == type(value).__name__
    await _is_clean_and_usable(session)


async def test_what_code_has_made_comes_out(session: Session) -> None:
    await session.run("import datetime\nmade = {'when': datetime.date(2026, 1, 2), 'all': {1, 2}}")
    found = await session.get("made")
    assert found["all"] == {1, 2} and found["when"].year == 2026
    await session.run("6 * 7")
    assert await session.get("_") == 42


async def test_frames_go_in_and_come_out(roomy: Session) -> None:
    pandas, numpy = libraries.need("pandas"), libraries.need("numpy")
    frame = pandas.DataFrame(
        {
            "number": numpy.arange(300_000),
            "text": [f"é{number}" if number % 7 else None for number in range(300_000)],
            "when": pandas.date_range("2026-01-01", periods=300_000, freq="s", tz="Europe/Berlin"),
            "kind": pandas.Categorical(["a", "b", None] * 100_000),
        }
    )
    await roomy.set("frame", frame)
    shown = await roomy.run("[str(each) for each in frame.dtypes]")
    assert shown.value == ["int64", "str", "datetime64[us, Europe/Berlin]", "category"]
    pandas.testing.assert_frame_equal(await roomy.get("frame"), frame)
    await roomy.run("counts = frame.kind.value_counts()")
    assert (await roomy.get("counts")).to_dict() == {"a": 100_000, "b": 100_000}
    assert (await roomy.run("frame.loc[0, 'number'] = 9; frame.number.iloc[0]")).value == 9
    await _is_clean_and_usable(roomy)


async def test_arrays_go_in_and_come_out(roomy: Session) -> None:
    numpy = libraries.need("numpy")
    array = numpy.random.default_rng(1).random((500, 600))
    await roomy.set("array", array)
    await roomy.run("array *= 2")
    numpy.testing.assert_array_equal(await roomy.get("array"), array * 2)
    with pytest.raises(InvalidInput, match="use astype"):
        await roomy.set("array", numpy.array([(1, 2)], [("a", int), ("b", int)]))
    await _is_clean_and_usable(roomy)


async def test_frames_of_polars_become_frames_of_pandas_and_come_out_as_either(
    session: Session,
) -> None:
    polars, pandas = libraries.need("polars"), libraries.need("pandas")
    await session.set("frame", polars.DataFrame({"a": [1, None], "b": ["x", "y"]}))
    assert (await session.run("type(frame).__module__")).value.startswith("pandas")
    assert (await session.get("frame", frame="polars")).to_dict(as_series=False) == {
        "a": [1, None],
        "b": ["x", "y"],
    }
    assert type(await session.get("frame")) is pandas.DataFrame


async def test_levels_with_categories_go_in_and_come_out(session: Session) -> None:
    pandas = libraries.need("pandas")
    frame = pandas.DataFrame({"k": pandas.Categorical(["a", "b"]), "n": [1, 2], "v": [3, 4]})
    await session.set("frame", frame)
    await session.run("sums = frame.groupby(['k', 'n'], observed=True).v.sum()")
    expected = frame.groupby(["k", "n"], observed=True).v.sum()
    pandas.testing.assert_series_equal(await session.get("sums"), expected)
    levels = frame.set_index(["k", "n"])
    for given in (levels, levels.T):
        await session.set("levels", given)
        pandas.testing.assert_frame_equal(await session.get("levels"), given)


async def test_types_of_polars_come_back_from_a_session_without_it(session: Session) -> None:
    polars = libraries.need("polars")
    given = polars.DataFrame(
        {"day": [date(2026, 1, 1)], "none": [None], "wide": [7], "half": [1.5]},
        schema_overrides={"wide": polars.Int128, "half": polars.Float16},
    )
    await session.set("frame", given)
    result = await session.run("twice = frame[frame.half > 1].copy(); str(twice.day.dtype)")
    assert result.value == "datetime64[s]"
    found = await session.get("twice", frame="polars")
    assert found.schema == given.schema and found.equals(given)


async def test_what_a_session_cant_read_is_told_in_plain_words(session: Session) -> None:
    await session.run(
        "from divingbell_inside import columns, parcels\n"
        "def fail(reader): raise columns.Broken('a reason')\n"
        "parcels.unpack = fail"
    )
    with pytest.raises(InvalidInput, match=r"'v': the packages of the session .*\(a reason\): use"):
        await session.set("v", 1)


async def test_a_million_texts_go_in_and_come_out(roomy: Session) -> None:
    pandas = libraries.need("pandas")
    frame = pandas.DataFrame({"text": [f"name {number}" for number in range(1_000_000)]})
    await roomy.set("frame", frame)
    pandas.testing.assert_frame_equal(await roomy.get("frame"), frame)
    await _is_clean_and_usable(roomy)


async def test_large_values_are_written_and_read_beside_the_event_loop(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[str] = []

    def noting(work: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            where.append(threading.current_thread().name)
            return work(*arguments)

        return noted

    monkeypatch.setattr(parcels, "pack", noting(parcels.pack))
    monkeypatch.setattr(parcels, "unpack", noting(parcels.unpack))
    await session.set("value", LARGE)
    await session.get("value")
    assert len(where) == 2 and threading.main_thread().name not in where


@pytest.mark.parametrize("form", ["parquet", "csv"])
async def test_tables_travel_as_files_of_a_known_format(
    session: Session, form: Any, tmp_path: Path
) -> None:
    await session.run("import pandas\ntable = pandas.DataFrame({'a': [1, 2], 'b': ['x', None]})")
    content = await session.get("table", format=form)
    assert content.startswith(b"PAR1" if form == "parquet" else b"a,b\n")
    (tmp_path / "table").write_bytes(content)
    for source in (content, tmp_path / "table"):
        await session.set("again", source, format=form)
        assert (await session.run("again.to_dict('list')['a']")).value == [1, 2]
    await _is_clean_and_usable(session)


async def test_a_file_that_is_none_of_its_format_is_refused(session: Session) -> None:
    with pytest.raises(InvalidInput, match=r"'table': .*[Pp]arquet"):
        await session.set("table", b"no such file", format="parquet")
    with pytest.raises(InvalidInput, match=r"pyarrow.*packages"):
        await session.set("table", b"no such file", format="arrow")
    with pytest.raises(InvalidInput, match=r"bytes or a pathlib\.Path, not dict"):
        await session.set("table", {}, format="csv")
    with pytest.raises(InvalidInput, match="is no file"):
        await session.set("table", Path("/nowhere/at/all"), format="csv")
    with pytest.raises(InvalidInput, match="one of parquet, arrow, csv"):
        await session.set("table", b"", format="pickle")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no variable"):
        await session.get("table")
    await session.run("number = 5")
    with pytest.raises(InvalidInput, match="no table: make a DataFrame"):
        await session.get("number", format="csv")
    await _is_clean_and_usable(session)


async def test_duckdb_leaves_no_thread_behind_so_a_copy_is_made(session: Session) -> None:
    await session.run("import pandas\ntable = pandas.DataFrame({'a': [1, 2]})")
    content = await session.get("table", format="parquet")
    await session.set("again", content, format="parquet")
    threads = await session.run("import os\nlen(os.listdir('/proc/self/task'))")
    assert threads.value == 1
    await until(lambda: session.copied_cell == 2, "a copy is made")
    assert session.copy_refused is None


async def test_a_variable_that_was_set_is_in_the_next_copy(session: Session) -> None:
    await session.run("first = 1")
    await until(lambda: session.copied_cell == 1, "a copy is made")
    await session.set("second", 2)
    copy = session._handle._copy  # the next one has the number of the same cell
    await until(lambda: not copy._changed, "another copy is made")
    result = await session.run("import os; os._exit(1)")
    assert (result.state, result.state_cell) == ("rewound", 1)
    assert await session.get("second") == 2


# Names


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "class", "None", 5, None, "x" * 201])
async def test_names_that_no_variable_can_have_are_refused(session: Session, name: Any) -> None:
    with pytest.raises(InvalidInput, match="name of a variable"):
        await session.set(name, 1)
    with pytest.raises(InvalidInput, match="name of a variable"):
        await session.get(name)


@pytest.mark.parametrize("name", ["_", "__", "__name__", "servers", "search_tools", "__builtins__"])
async def test_names_that_mean_something_already_are_refused(session: Session, name: str) -> None:
    with pytest.raises(InvalidInput, match="own: choose another"):
        await session.set(name, 1)


async def test_a_name_that_is_missing_is_told_with_those_that_are_near(session: Session) -> None:
    await session.run("revenue = 1\n_hidden = 2")
    with pytest.raises(InvalidInput, match="no variable 'revenu'; there is revenue"):
        await session.get("revenu")
    with pytest.raises(InvalidInput, match=r"session\.variables\(\) lists"):
        await session.get("else_where")


# Limits


async def test_what_will_not_fit_is_refused_beforehand_with_the_figures(bell: Divingbell) -> None:
    async with bell.session(memory="128MB", disk="4MB") as session:
        with pytest.raises(InvalidInput, match=r"[\d,]+ bytes.*disk.*[\d,]+ are free"):
            await session.set("value", "x" * 5_000_000)
        with pytest.raises(InvalidInput, match=r"[\d,]+ bytes.*the limit memory.*134,217,728"):
            await session.set("value", b"x" * 70_000_000)
        await session.run("value = 'x' * 5_000_000")
        with pytest.raises(InvalidInput, match=r"[\d,]+ bytes, 4,194,304 are allowed"):
            await session.get("value")
        with pytest.raises(InvalidInput, match=r"[\d,]+ bytes on the session's disk.*are free"):
            await session.get("value", most=10_000_000)
        await session.run("value = 'x' * 2_000_000")
        assert len(await session.get("value")) == 2_000_000
        await _is_clean_and_usable(session)


@pytest.mark.parametrize("most", [0, -1, 1.5, "1MB", True])
async def test_a_limit_that_is_no_number_of_bytes_is_refused(session: Session, most: Any) -> None:
    with pytest.raises(InvalidInput, match="number of bytes"):
        await session.get("value", most=most)


@pytest.mark.parametrize("size", [1000, 2_000_000])
async def test_more_than_is_allowed_is_refused(session: Session, size: int) -> None:
    await session.set("value", "x" * size)
    with pytest.raises(InvalidInput, match=r"[\d,]+ bytes, 500 are allowed"):
        await session.get("value", most=500)
    await _is_clean_and_usable(session)


async def test_plain_data_of_too_many_values_is_not_parsed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session.run("value = [[]] * 50_000")
    assert await session.get("value") == [[]] * 50_000
    monkeypatch.setattr(data, "MAX_WEIGHT", 100_000)
    with pytest.raises(InvalidInput, match="too many values"):
        await session.get("value")


@pytest.mark.parametrize(
    ("item", "most"),
    [
        (1, 4_000_000),
        (1.5, 2_000_000),
        ("a", 1_300_000),
        ([], 400_000),
        (date(2026, 1, 1), 280_000),
        (b"a", 280_000),
    ],
)
def test_lists_on_their_way_out_may_be_as_long_as_the_docs_say(item: Any, most: int) -> None:
    count = 10_000
    weights: list[int] = []
    packed = bytearray(b"".join(parcels.pack([item] * count)))
    reader = columns.Reader(packed, lambda raw: weights.append(weight.weight_of(raw, len(packed))))
    assert parcels.unpack(reader) == [item] * count
    longest = data.MAX_WEIGHT * count / sum(weights)
    assert 0.98 * most < longest < 1.12 * most


# What hostile code does


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("value = object()", "is of the type object: what can be passed is plain data"),
        ("value = [1, lambda: 1]", r"at \[1\] that is of the type function"),
        ("class Liar:\n    __class__ = dict\nvalue = Liar()", "is of the type Liar"),
        (
            "import pandas\nclass Kind(pandas.DataFrame):\n"
            "    index = property(lambda self: 1 / 0)\nvalue = Kind()",
            "is a Kind, a kind of DataFrame: make a plain",
        ),
        (
            "class Trap:\n    def __getattribute__(self, name): raise SystemExit\nvalue = Trap()",
            "is of the type Trap",
        ),
        (
            "import pandas\nvalue = pandas.DataFrame({'a': [object()]})",
            "the column 'a' holds someth",
        ),
        ("value = 'x\\ud800'", "lone surrogate"),
        ("import sys\nvalue = sys", "is of the type module"),
    ],
)
async def test_what_cant_be_passed_says_what_it_is(session: Session, code: str, words: str) -> None:
    await session.run(code)
    with pytest.raises(InvalidInput, match=f"'value': .*{words}"):
        await session.get("value")
    await _is_clean_and_usable(session)


FORGE = """
from divingbell_inside import exchange, parcels
kept = parcels.pack
parcels.pack = lambda value: [value]
exchange.parcels.pack = parcels.pack
forged = {!r}
"""


@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_a_forged_file_is_refused_whatever_its_size(session: Session, size: int) -> None:
    await session.run(FORGE.format(b"y" * 10) + f"forged *= {size // 10}")
    with pytest.raises(InvalidInput, match="gave for 'forged' is no value: it does not begin"):
        await session.get("forged")
    await _is_clean_and_usable(session)


async def test_a_forged_answer_harms_nobody(session: Session) -> None:
    lies = [
        "[]",
        "[5]",
        "[{'file': True}]",
        "[{'free': 'x'}]",
        "[{'file': 1}]",
        "[{'refused': 'x' * 400_000}]",
    ]
    for lie in lies:
        await session.run(
            f"from divingbell_inside import exchange\nexchange.answer = lambda *a: ({lie}, b'')"
        )
        with pytest.raises(DivingbellError) as raised:
            await session.get("value")
        assert len(str(raised.value)) < 1000
        for value in (1, LARGE):
            with pytest.raises(DivingbellError):
                await session.set("value", value)


async def test_a_value_that_never_ends_is_given_up_and_the_session_lives(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.session.local.DATA_TIMEOUT", 0.2)
    await session.run(
        "from divingbell_inside import exchange, parcels\nkept = 1\n"
        "def forever(value):\n    while True: pass\n"
        "parcels.pack = forever"
    )
    with pytest.raises(DivingbellError, match="gave no answer"):
        await session.get("kept")
    assert (await session.run("kept")).value == 1


# Ends before the end


async def test_a_get_that_is_cancelled_leaves_nothing_behind(session: Session) -> None:
    await session.run(
        "import time\nfrom divingbell_inside import parcels\npack = parcels.pack\nvalue = 5\n"
        "def slowly(value):\n    open('/workspace/begun', 'w').close()\n    time.sleep(30)\n"
        "parcels.pack = slowly"
    )
    getting = asyncio.create_task(session.get("value"))
    await until_there(session, "begun")
    getting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await getting
    await session.files.remove("begun")
    await session.run("parcels.pack = pack")
    assert await session.get("value") == 5
    await _is_clean_and_usable(session)


async def test_a_set_that_is_cancelled_on_its_way_leaves_nothing_behind(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = asyncio.Event()
    each = data._each

    async def stopping(pieces: Any) -> AsyncIterator[bytes]:
        async for piece in each(pieces):
            yield piece
            half.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(data, "_each", stopping)
    setting = asyncio.create_task(session.set("value", LARGE))
    await asyncio.wait_for(half.wait(), 30)
    setting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await setting
    monkeypatch.undo()
    await _is_clean_and_usable(session)
    with pytest.raises(InvalidInput, match="no variable"):
        await session.get("value")


async def test_a_file_that_nobody_has_read_is_removed(session: Session) -> None:
    await session.run(
        "import os\nfrom divingbell_inside import exchange\n"
        "def end(*arguments): os._exit(1)\nexchange._set = end"
    )
    with pytest.raises(DivingbellError, match="gave no answer"):
        await session.set("value", LARGE)
    await _is_clean_and_usable(session)


async def test_values_wait_in_the_queue_of_cells(session: Session) -> None:
    running = asyncio.create_task(session.run("import time; time.sleep(0.3); late = 1"))
    await until(lambda: session.busy, "the cell runs")
    assert await session.get("late") == 1
    await running


async def test_a_session_that_has_ended_says_so(bell: Divingbell) -> None:
    async with bell.session() as session:
        await session.set("value", 1)
    with pytest.raises(SessionClosed):
        await session.get("value")
    with pytest.raises(SessionClosed):
        await session.set("value", LARGE)


WITHOUT_LIBRARIES = """
import asyncio, sys
from divingbell import Divingbell, InvalidInput

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())

async def main():
    async with Divingbell(pool=0) as bell, bell.session() as session:
        await session.set("value", {1: (2, 3)})
        print(await session.get("value"))
        await session.run("import pandas; table = pandas.DataFrame({'a': [1]})")
        await session.run("array = table.a.to_numpy()")
        for name in ("table", "array"):
            try:
                await session.get(name)
            except InvalidInput as error:
                print(error)
        print((await session.get("table", format="csv")).decode().split())

asyncio.run(main())
"""


def test_a_program_without_libraries_passes_plain_data_and_is_told_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARIES], capture_output=True, text=True, timeout=120
    )
    plain, table, array, csv = done.stdout.splitlines()
    assert plain == "{1: (2, 3)}" and csv == "['a', '1']"
    assert "pandas nor polars" in table and "install" in table
    assert "numpy is not installed" in array


def test_no_library_is_loaded_for_plain_data() -> None:
    code = (
        "import sys\nfrom divingbell_inside import columns, parcels\n"
        "parcels.unpack(columns.Reader(bytearray(b''.join(parcels.pack([1, {'a': b'x'}])))))\n"
        "print({'numpy', 'pandas', 'polars'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()"
