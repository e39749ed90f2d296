import asyncio
import datetime
import decimal
import gc
import math
import zoneinfo
from collections import OrderedDict
from enum import StrEnum
from typing import Any

import pytest

from divingbell import InvalidInput, Session
from divingbell.session import value
from divingbell.session.outcome import Ending
from divingbell.shares import weight
from divingbell_inside import values

OSLO = zoneinfo.ZoneInfo("Europe/Oslo")
IMPORTS = "import datetime, decimal, uuid, zoneinfo, numpy, pandas\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("'text'", "text"),
        ("[1, {'a': None}, (2.5, True)]", [1, {"a": None}, (2.5, True)]),
        ("{1, 2}", {1, 2}),
        ("{1: 2, (3, 4): b'5'}", {1: 2, (3, 4): b"5"}),
        ("{'$date': 1}", {"$date": 1}),
        ("[datetime.date(2026, 11, 17), decimal.Decimal('1.10')]",
         [datetime.date(2026, 11, 17), decimal.Decimal("1.10")]),
        ("datetime.datetime(2026, 11, 17, tzinfo=zoneinfo.ZoneInfo('Europe/Oslo'))",
         datetime.datetime(2026, 11, 17, tzinfo=OSLO)),
        ("None", None),
        ("7;", None),
        ("x = 7", None),
        ("numpy.float32(0.5)", 0.5),
        ("{numpy.int64(1): numpy.bool_(True)}", {1: True}),
        ("[numpy.complex64(1j), numpy.str_('a'), numpy.bytes_(b'a')]", [1j, "a", b"a"]),
        ("numpy.datetime64('2026-11-17')", datetime.date(2026, 11, 17)),
        ("numpy.datetime64('2026-11-17T01:02:03.000004000')",
         datetime.datetime(2026, 11, 17, 1, 2, 3, 4)),
        ("numpy.timedelta64(1500, 'ms')", datetime.timedelta(seconds=1.5)),
        ("numpy.timedelta64(1000, 'ns')", datetime.timedelta(microseconds=1)),
        ("pandas.Timestamp('2026-11-17', tz='UTC')",
         datetime.datetime(2026, 11, 17, tzinfo=datetime.UTC)),
        ("pandas.Timedelta('1 day')", datetime.timedelta(days=1)),
        ("[pandas.NaT, pandas.NA, numpy.datetime64('NaT')]", [None, None, None]),
        ("pandas.DataFrame({'d': [pandas.Timestamp('2026-11-17')]}).to_dict('records')",
         [{"d": datetime.datetime(2026, 11, 17)}]),
    ],
)  # fmt: skip
async def test_plain_data_is_the_value_itself(session: Session, code: str, expected: Any) -> None:
    result = await session.run(IMPORTS + code)
    assert result.status == "ok", result.error
    assert (result.value, type(result.value)) == (expected, type(expected))
    assert result.value_kind == "data" and not result.notes


async def test_what_is_no_number_is_one_that_is_none(session: Session) -> None:
    [nan, infinite] = (await session.run("[float('nan'), float('-inf')]")).value
    assert math.isnan(nan) and infinite == -math.inf


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("object", "object"),
        ("numpy.array([1, 2])", "array([1, 2])"),
        ("numpy.datetime64('2026-11-17T00:00:00.000000001')",
         "np.datetime64('2026-11-17T00:00:00.000000001')"),
        ("numpy.timedelta64(1, 'M')", "np.timedelta64(1,'M')"),
        ("numpy.longdouble(1)", "np.longdouble('1.0')"),
        ("numpy.zeros(1, 'i4,i4')[0]", "np.void((0, 0), dtype=[('f0', '<i4'), ('f1', '<i4')])"),
        ("file = open('/usr/share/zoneinfo/Europe/Oslo', 'rb')\n"
         "zone = zoneinfo.ZoneInfo.from_file(file, key=5)\n"
         "datetime.time(tzinfo=zone)", "datetime.time(0, 0, tzinfo=zoneinfo.ZoneInfo(key=5))"),
        ("pandas.Timestamp('2026-11-17T00:00:00.000000001')",
         "Timestamp('2026-11-17 00:00:00.000000001')"),
        ("class Text(str): pass\nText('a')", "'a'"),
        ("'\\ud800'", "'\\ud800'"),
        ("x = []; x.append(x); x", "[[...]]"),
    ],
)  # fmt: skip
async def test_anything_else_is_its_text(session: Session, code: str, text: str) -> None:
    result = await session.run(IMPORTS + code)
    assert result.status == "ok", result.error
    assert (result.value, result.value_kind) == (text, "text")
    assert not result.notes


async def test_a_text_and_what_looks_like_it_can_be_told_apart(session: Session) -> None:
    found = [await session.run(code) for code in ("object", "'object'", "'{1, 2}'", "{1, 2}")]
    assert [result.value_kind for result in found] == ["text", "data", "data", "data"]
    assert found[2].value != found[3].value


async def test_a_picture_has_no_text(session: Session) -> None:
    result = await session.run("import matplotlib.pyplot as plt\nplt.plot([1])[0].figure")
    assert (result.value, result.value_kind) == ("", "text")


@pytest.mark.parametrize(
    "code",
    [
        "list(range(200_000))",
        "[number / 8 for number in range(200_000)]",
        "'é' * 3_000_000",
        "bytes(2_000_000)",
        "[{'id': number, 'name': 'n'} for number in range(30_000)]",
    ],
)
async def test_large_data_is_whole(session: Session, code: str) -> None:
    result = await session.run(code)
    assert result.value == eval(code)
    assert result.value_kind == "data"


@pytest.mark.parametrize(
    "code",
    [
        "list(range(1_000_000))",
        "'x' * 10_000_000",
        "'\\0' * 3_000_000",
        "[()] * 100_000",
        "[object()] * 2_000",
        "class Big:\n    def __repr__(self): return 'x' * 5_000_000\nBig()",
    ],
)
async def test_what_is_too_large_is_cut_and_the_note_says_what_to_do(
    session: Session, code: str
) -> None:
    result = await session.run(code)
    assert result.status == "ok" and result.value_kind == "cut"
    assert isinstance(result.value, str) and 0 < len(result.value) < 2_000_000
    assert value.TOO_LARGE in result.notes


async def test_text_of_a_value_that_the_output_has_no_room_for_is_cut(session: Session) -> None:
    result = await session.run("class Big:\n    def __repr__(self): return 'x' * 3_000_000\nBig()")
    assert result.value_kind == "cut" and "left out" in result.value
    assert [note for note in result.notes if "/workspace/.outputs/" in note]


async def test_a_value_is_whole_where_only_what_was_printed_is_cut(session: Session) -> None:
    result = await session.run("print('x' * 3_000_000)\nobject")
    assert (result.value, result.value_kind) == ("object", "text")


async def test_a_cell_that_fails_has_no_value(session: Session) -> None:
    result = await session.run("1 / 0")
    assert (result.value, result.value_kind) == (None, "data")


async def test_an_object_that_lies_about_its_type_is_its_text(session: Session) -> None:
    result = await session.run(
        "class Meta(type):\n"
        "    __hash__ = None\n"
        "    def __eq__(self, other): return True\n"
        "    def __getattribute__(self, name): raise SystemExit(7)\n"
        "class Liar(metaclass=Meta):\n"
        "    __class__ = int\n"
        "    def __repr__(self): return 'a liar'\n"
        "[Liar()]"
    )
    assert (result.status, result.value_kind) == ("ok", "text")


def charged() -> tuple[list[float], Any]:
    seconds: list[float] = []
    return seconds, seconds.append


@pytest.mark.parametrize(
    "body",
    [b"[" * 1_000_000, b"[[" * 100 + b"]]" * 100, b"nonsense", b'{"$set":[[]]}', b'"\\ud800"'],
    ids=lambda body: str(body[:12]),
)
async def test_a_forged_value_is_given_as_text(body: bytes) -> None:
    found = await value.value_of(Ending(True, {}, body=body), lambda seconds: None)
    assert found.data is None and found.kind != "data" and found.note


@pytest.mark.parametrize("body", [b"[],[]," * 200_000, b'"' + b"x" * value.MAX_SIZE + b'"'])
async def test_what_is_too_heavy_is_never_parsed(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "from_json", None)
    found = await value.value_of(Ending(True, {}, body=body), lambda seconds: None)
    assert (found.kind, found.note) == ("cut", value.TOO_LARGE)


async def test_large_values_are_read_beside_the_loop_and_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds, charge = charged()
    small, large = values.to_json([1]), values.to_json(list(range(10_000)))
    assert (await value.value_of(Ending(True, {}, body=small), charge)).data == [1]
    assert not seconds
    zoned = values.to_json(datetime.datetime(2026, 11, 17, tzinfo=OSLO))
    for body in (zoned, zoned.replace(b"zone", b"\\u007aone")):
        assert (await value.value_of(Ending(True, {}, body=body), charge)).data.tzinfo is OSLO
    assert len(seconds) == 2
    seconds.clear()
    assert (await value.value_of(Ending(True, {}, body=large), charge)).data[-1] == 9_999
    [spent] = seconds
    assert spent > 0


async def test_nothing_is_collected_while_a_large_value_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collecting: list[bool] = []
    read = values.from_json
    monkeypatch.setattr(
        values, "from_json", lambda body: collecting.append(gc.isenabled()) or read(body)
    )
    body = values.to_json([[]] * 10_000)
    found = await value.value_of(Ending(True, {}, body=body), lambda seconds: None)
    assert len(found.data) == 10_000
    assert collecting == [False] and gc.isenabled()


class Color(StrEnum):
    RED = "red"


CONTEXT = {
    "numbers": {1: 2, (3, 4): math.inf},
    "when": [datetime.date(2026, 11, 17), datetime.datetime(2026, 11, 17, tzinfo=OSLO)],
    "price": decimal.Decimal("1.10"),
    "raw": b"\0\xff",
    "names": {"a", "b"},
    "odd": {"$set": [1]},
}


async def test_context_arrives_exactly_as_it_is(session: Session) -> None:
    result = await session.run("[numbers, when, price, raw, names, odd]", context=CONTEXT)
    assert result.value == list(CONTEXT.values())
    kinds = await session.run("[type(x).__name__ for x in (numbers, price, raw, names, odd)]")
    assert kinds.value == ["dict", "Decimal", "bytes", "set", "dict"]


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"rows": [1, 2, 3, {"when": object()}]}, "context: rows[3].when is of the type object. "),
        ({"x": Color.RED}, "context: x is of the type Color, a kind of str. "),
        ({"x": [OrderedDict()]}, "context: x[0] is of the type OrderedDict, a kind of dict. "),
        ({"x": "\ud800"}, "context: x is a text with half a character"),
        ({"x": 1 << 5000}, "context: x is a number of more than 4096 bits"),
        ({"x y": 1}, "context: 'x y' can't be the name of a variable"),
        ({Color.RED: 1}, "can't be the name of a variable"),
        ({"x": list(range(5000)), "y": object()}, "context: y is of the type object. "),
        ({"x": "x" * 17_000_000}, "session.files.put()"),
    ],
)
async def test_context_that_can_not_be_kept_is_refused_by_its_place(
    session: Session, context: Any, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await session.run("1", context=context)
    assert words in str(caught.value)
    assert (await session.run("1 + 1")).value == 2


async def test_large_context_is_written_beside_the_loop_and_keeps_its_turn(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[float] = []
    charge = weight.charged

    async def noted(make: Any, charge_to: Any) -> Any:
        made = await charge(make, lambda seconds: (work.append(seconds), charge_to(seconds)))
        return made

    monkeypatch.setattr(weight, "charged", noted)
    many = list(range(100_000))
    first = asyncio.create_task(session.run("order = ['large']; len(many)", context={"many": many}))
    second = asyncio.create_task(session.run("order.append('small'); order"))
    assert (await first).value == 100_000
    assert (await second).value == ["large", "small"]
    assert len(work) == 1
