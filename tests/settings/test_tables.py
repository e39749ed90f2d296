"""The reader of tables: whatever stands in one, it is read as annotated, or told with its name."""

import datetime
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from divingbell.errors import ConfigError
from divingbell.models import Limits, Size
from divingbell.settings import config, mcp_json, tables
from divingbell.settings.config import Settings
from divingbell.settings.markers import (
    NOT_READ,
    Check,
    Described,
    FilePath,
    ReadBy,
    Seconds,
    at_least,
    at_most,
    one_or_more,
)
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Server, UnusableServer, read_entries
from divingbell.settings.tables import Place, read


@dataclass(frozen=True, slots=True)
class Shelf:
    """A table within a table."""

    width: Annotated[int, at_least(1)]
    """How wide it is."""
    colour: Literal["red", "blue"] = "red"
    """Its colour."""


@dataclass(frozen=True, slots=True)
class Cupboard:
    """A table with a setting of each kind."""

    name: str = "cupboard"
    doors: int = 2
    weight: float = 1.5
    is_open: bool = False
    size: Size = 0
    wait: Seconds = 1.0
    labels: Annotated[tuple[str, ...], one_or_more] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    folder: FilePath = ""
    owner: str | None = None
    shelf: Shelf | None = None
    shelves: Annotated[tuple[Shelf, ...], at_most(3)] = ()
    nails: Annotated[
        int, Described("an even number"), Check("", lambda number: number % 2 == 0)
    ] = 0
    screws: Annotated[str, ReadBy(lambda raw, place: f"{place}: {type(raw).__name__}")] = ""
    anything: Any = None
    maker: Annotated[str, NOT_READ] = "us"


PLACE = Place("house.toml", "cupboard", folder=Path("/house"))


def make(**raw: Any) -> Cupboard:
    return read(Cupboard, raw, PLACE)


# Values


def test_an_empty_table_gives_the_defaults() -> None:
    assert make() == Cupboard()


def test_values_are_read_as_annotated() -> None:
    made = make(
        doors=3,
        weight=2,
        is_open=True,
        size="2KB",
        wait=5,
        labels="one",
        prices={"oak": 3},
        folder="tools",
        owner="Ann",
        shelf={"width": 4},
        shelves=[{"width": 1}, {"width": 2, "colour": "blue"}],
        nails=4,
        screws=[],
        anything={"a": [1]},
    )
    assert made == Cupboard(
        doors=3,
        weight=2.0,
        is_open=True,
        size=2048,
        wait=5.0,
        labels=("one",),
        prices={"oak": 3.0},
        folder="/house/tools",
        owner="Ann",
        shelf=Shelf(4),
        shelves=(Shelf(1), Shelf(2, "blue")),
        nails=4,
        screws="house.toml, [cupboard]: list",
        anything={"a": [1]},
    )
    assert isinstance(made.weight, float) and isinstance(made.wait, float)


def test_none_is_as_good_as_nothing_and_what_is_made_is_taken_as_it_is() -> None:
    shelf = Shelf(7)
    assert make(doors=None, shelf=None) == Cupboard()
    assert make(shelf=shelf).shelf is shelf
    assert read(Shelf, shelf, PLACE) is shelf


def test_paths_are_relative_to_the_place_and_may_be_paths() -> None:
    assert make(folder="/elsewhere").folder == "/elsewhere"
    assert make(folder=Path("below")).folder == "/house/below"
    assert make(folder="~/tools").folder == str(Path.home() / "tools")
    assert make(folder="").folder == ""


def test_texts_of_the_environment_stand_for_values() -> None:
    raw = {
        "doors": "3",
        "weight": "0.5",
        "is_open": "true",
        "size": "1KB",
        "labels": "a, b c",
        "prices": "oak=1,elm=2",
        "owner": "5",
    }
    made = read(Cupboard, raw, Place("the environment", are_texts=True))
    assert (made.doors, made.weight, made.is_open, made.size) == (3, 0.5, True, 1024)
    assert (made.labels, made.owner) == (("a", "b", "c"), "5")
    assert made.prices == {"oak": 1.0, "elm": 2.0}


# Messages


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"dors": 1}, "there is no setting 'dors'; did you mean 'doors'?"),
        ({"zzz": 1}, "there is no setting 'zzz': there are name, doors, weight, "),
        ({"maker": "me"}, "there is no setting 'maker'"),
        ({5: 1}, "there is no setting 5: there are"),
        ({"doors": "3"}, "doors must be a whole number, not '3'"),
        ({"doors": True}, "doors must be a whole number, not True"),
        ({"weight": "heavy"}, "weight must be a number, not 'heavy'"),
        ({"weight": math.nan}, "weight must be a number, not nan"),
        ({"weight": 10**400}, "weight must be a number, not 1000"),
        ({"is_open": 1}, "is_open must be true or false, not 1"),
        ({"name": 5}, "name must be a text, not 5"),
        ({"size": "big"}, "size: 'big' is not a size"),
        ({"wait": 0}, "wait must be a number of seconds, more than 0 and less than"),
        ({"wait": math.inf}, "wait must be a number of seconds"),
        ({"labels": [1]}, "labels must be a list of texts, not [1]"),
        ({"prices": []}, "prices must be a table of numbers, not []"),
        ({"prices": {"oak": "x"}}, "prices oak must be a number, not 'x'"),
        ({"prices": {5: 1}}, "each name in prices must be a text, not 5"),
        ({"folder": 5}, "folder must be a path, not 5"),
        ({"folder": "~no-such-user/x"}, "folder: there is no such home directory"),
        ({"folder": "\0"}, "folder: a path has no zero byte"),
        ({"shelves": {}}, "shelves must be a list of tables, not {}"),
        ({"shelves": [{}] * 4}, "shelves: there are 4, and 3 are the most"),
        ({"nails": 3}, "nails must be an even number, not 3"),
        ({"nails": "3"}, "nails must be an even number, not '3'"),
    ],
)
def test_a_mistake_is_told_with_its_place(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(Cupboard, raw, PLACE)
    assert str(caught.value).startswith(f"house.toml, [cupboard]: {words}")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"shelf": 5}, "house.toml, [cupboard.shelf] must be a table"),
        ({"shelf": {}}, "house.toml, [cupboard.shelf] has no 'width'"),
        ({"shelves": [{"width": 1}, 2]}, "house.toml, [cupboard.shelves], shelf 2 must be a table"),
        (
            {"shelves": [{"width": 0}]},
            "house.toml, [cupboard.shelves], shelf 1: width must be a whole number, 1 or more, "
            "not 0",
        ),
        (
            {"shelf": {"width": 1, "colour": "green"}},
            'house.toml, [cupboard.shelf]: colour must be "red" or "blue", not \'green\'',
        ),
    ],
)
def test_a_mistake_in_an_inner_table_is_told_with_its_place(
    raw: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(Cupboard, raw, PLACE)
    assert str(caught.value) == message


def test_no_value_is_shown_where_it_may_be_a_secret() -> None:
    hidden = Place("house.toml", hides_values=True)
    for raw in ({"doors": "s3cret"}, {"prices": {"oak": "s3cret"}}, {"folder": ["s3cret"]}):
        with pytest.raises(ConfigError) as caught:
            read(Cupboard, raw, hidden)
        assert "must be" in str(caught.value) and "s3cret" not in str(caught.value)


def test_a_long_value_is_shown_in_short() -> None:
    for value in ("x" * 100_000, ["x" * 1000] * 1000, {"x" * 1000: 1}, 16**5000):
        with pytest.raises(ConfigError) as caught:
            make(is_open=value)
        assert len(str(caught.value)) < 1000


def test_an_object_that_a_program_has_made_can_be_checked() -> None:
    tables.check(Cupboard(doors=4, labels=("a",)))
    with pytest.raises(ConfigError, match=r"^doors must be a whole number, not 'x'$"):
        tables.check(Cupboard(doors="x"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^pool must be a whole number, 0 or more, not -1$"):
        Settings(pool=-1)


# A new table


@dataclass(frozen=True, slots=True)
class Curtain:
    """What a later version may have: the table [curtain]."""

    level: Literal["open", "closed"] = "open"
    """Who may look."""
    forget_after: Seconds = 60.0
    """Seconds after which it is forgotten."""


@dataclass(frozen=True, slots=True)
class WiderSettings(Settings):
    """The settings with one field more."""

    curtain: Curtain = field(default_factory=Curtain)
    """What is shown to whom."""


def test_a_new_table_is_a_dataclass_and_one_field_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "Settings", WiderSettings)
    file = tmp_path / "divingbell.toml"

    def load(text: str, **arguments: Any) -> WiderSettings:
        file.write_text(text)
        made = config.load(file, arguments, {})
        assert isinstance(made, WiderSettings)
        return made

    assert load("").curtain == Curtain()
    text = '[curtain]\nlevel = "closed"\nforget_after = 5\n'
    assert load(text).curtain == Curtain("closed", 5.0)
    assert load(text, curtain={"forget_after": 7}).curtain == Curtain(forget_after=7.0)
    assert load(text, curtain=Curtain()).curtain == Curtain()
    with pytest.raises(ConfigError, match=r"\[curtain\]: there is no setting 'lvl'; did you mean"):
        load("[curtain]\nlvl = 1")
    with pytest.raises(ConfigError, match=r'\[curtain\]: level must be "open" or "closed", not 5'):
        load("[curtain]\nlevel = 5")
    with pytest.raises(ConfigError, match="the environment: there is no setting 'curtain'"):
        config.load(None, {}, {"DIVINGBELL_CURTAIN": "closed"})


# Whatever stands there

HUGE, VERY_DEEP = "a huge number", "a deep list"
"""Stand for what hypothesis could not print."""
LIVELY: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2000),
    st.sampled_from([HUGE, VERY_DEEP, 10**400, math.nan, math.inf, -0.0]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        [
            "", "!", "*", "a.*", "a.b.c", "1KB", "9" * 400 + "GB", "60/minute", "~x/y", "a\0b",
            "${X}", "${HOME}", "${input:x}", "https://host/mcp", "http://[", "stdio", "http", "red",
            "deny", "memory", "local", "{user}", "{x}", "x" * 2000, "a." * 400,
        ]
    ),
    st.sampled_from([b"x", {1}, datetime.date(2020, 1, 1), Path("x"), object(), Shelf(1)]),
)  # fmt: skip


def _deep(levels: int) -> Any:
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]
    return deep


def _filled(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {key: _filled(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_filled(item) for item in raw]
    return 16**5000 if raw == HUGE else _deep(5000) if raw == VERY_DEEP else raw


def _raw(names: list[str]) -> st.SearchStrategy[dict[Any, Any]]:
    """Tables with these names and others, and with anything in them."""
    keys = st.sampled_from(names) | st.text(max_size=4) | st.integers(0, 3)
    inner = st.recursive(
        LIVELY,
        lambda each: st.lists(each, max_size=3) | st.dictionaries(keys, each, max_size=3),
        max_leaves=6,
    )
    known = st.dictionaries(st.sampled_from(names), inner, max_size=3)
    return known | st.dictionaries(keys, inner, max_size=3)


def _names(*kinds: type) -> list[str]:
    return [item.name for kind in kinds for item in fields(kind) if item.init]


def _names_a_key(error: ConfigError, raw: Mapping[Any, Any]) -> bool:
    """Whether a message names one of the keys."""
    message = str(error)
    return any(tables.shown(key).strip("'") in message for key in raw)


def _is_of(kind: Any, value: Any) -> bool:
    return type(value) is kind


@given(_raw(_names(Cupboard, Shelf)))
@example({"size": "9" * 400 + "GB"})
@example({"labels": [VERY_DEEP]})
@example({"doors": [HUGE]})
def test_any_table_is_read_as_annotated_or_told_with_the_name(raw: dict[Any, Any]) -> None:
    try:
        made = read(Cupboard, _filled(raw), PLACE)
    except ConfigError as error:
        assert _names_a_key(error, raw)
        return
    assert set(raw) <= set(tables.names(Cupboard))
    for name, kind in (("name", str), ("doors", int), ("weight", float), ("is_open", bool)):
        assert _is_of(kind, getattr(made, name))
    assert _is_of(int, made.size) and _is_of(float, made.wait) and 0 < made.wait < 1e9
    assert all(_is_of(str, label) for label in made.labels)
    assert all(_is_of(str, key) and _is_of(float, made.prices[key]) for key in made.prices)
    assert not made.folder or Path(made.folder).is_absolute()
    assert made.owner is None or _is_of(str, made.owner)
    shelves = [*made.shelves, *([made.shelf] if made.shelf else [])]
    assert all(shelf.width >= 1 and shelf.colour in ("red", "blue") for shelf in shelves)
    assert made.nails % 2 == 0 and made.maker == "us"


@given(st.dictionaries(st.sampled_from(_names(Cupboard)), st.text(max_size=6), max_size=3))
def test_any_texts_are_read_as_annotated_or_told_with_the_name(raw: dict[str, str]) -> None:
    try:
        made = read(Cupboard, raw, Place("the environment", are_texts=True))
    except ConfigError as error:
        assert _names_a_key(error, raw)
    else:
        assert _is_of(int, made.doors) and _is_of(float, made.weight)


@given(_raw([*_names(Settings, Limits), "command", "url"]))
@example({"servers": {"": None}})
@example({"servers": {"a": 5}})
def test_any_arguments_make_settings_or_are_told_with_the_name(raw: dict[Any, Any]) -> None:
    try:
        made = config.load(None, _filled(raw), {})
    except ConfigError as error:
        # Settings that do not go together, and servers, are told by their own names.
        assert _names_a_key(error, raw | dict.fromkeys([*_names(Settings), "server "]))
    else:
        assert isinstance(made, Settings)


@given(_raw([*_names(Policy), "tools", "action", "when", "users", "reason"]))
@example({"bound": {"a.b.c": HUGE}})
@example({"bound": {"a.b.c": VERY_DEEP}})
@example({"rules": [{"tools": "a.*", "action": "deny", "when": {"a." * 400: "x"}}]})
def test_any_policy_is_read_or_told_with_the_name(raw: dict[Any, Any]) -> None:
    try:
        made = Policy.from_mapping(_filled(raw), "f.toml")
    except ConfigError as error:
        assert str(error).startswith("f.toml, [policy") and _names_a_key(error, raw)
    else:
        assert isinstance(made, Policy)


ENTRIES = _raw([*_names(Server), "serverUrl", "type", "disabled", "scopes", "issuer", "port"])


@given(ENTRIES)
@example({"command": "x", "args": VERY_DEEP})
@example({"command": "x", "cwd": "~no-such-user/x"})
@example({"command": "x", "timeout": 10**400})
def test_any_entry_of_a_server_is_read_or_told_with_its_name(raw: dict[Any, Any]) -> None:
    place = Place("f.toml", folder=Path("/there"), environment={"HOME": "/home"})
    raw = _filled(raw)
    try:
        [made] = read_entries({"a": raw}, place)
    except ConfigError as error:
        assert str(error).startswith("f.toml, server 'a'")
    else:
        assert isinstance(made, Server | UnusableServer)
    [listed] = mcp_json.entries_of_list({"mcpServers": {"a": raw}}, Path("/mcp.json"), {})
    assert listed.name == "a"


# However much stands there


def _calls(action: Callable[[], Any]) -> int:
    """How many functions an action calls, those of the interpreter among them."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def _read_or_refused(raw: dict[str, Any]) -> None:
    try:
        read(Cupboard, raw, PLACE)
    except ConfigError as error:
        assert len(str(error)) < 1000


@pytest.mark.parametrize(
    "raw",
    [
        lambda size: {"labels": ["x"] * size},
        lambda size: {"labels": [*["x"] * size, 5]},
        lambda size: {"prices": {f"n{number}": 1 for number in range(size)}},
        lambda size: {f"n{number}": 1 for number in range(size)},
        lambda size: {"x" * size: 1},
        lambda size: {"door" * size: 1},
        lambda size: {"size": "1" + " " * size + "x"},
        lambda size: {"is_open": "x" * size},
        lambda size: {"is_open": _deep(size)},
        lambda size: {"anything": _deep(size)},
        lambda size: {"folder": "x/" * size},
    ],
)
def test_work_grows_no_faster_than_the_table(raw: Callable[[int], dict[str, Any]]) -> None:
    few, many = raw(2_000), raw(16_000)
    _read_or_refused(few)  # what is found once, and kept
    assert _calls(lambda: _read_or_refused(many)) <= 10 * _calls(lambda: _read_or_refused(few))
    _read_or_refused(raw(200_000))
