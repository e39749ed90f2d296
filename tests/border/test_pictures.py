"""Pictures under `privacy`: charts are shown if nothing is found in the texts that were drawn."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client

from divingbell import Divingbell, Result, Session
from divingbell.border.pictures import MOST_PICTURES, Pictures
from divingbell.surfaces.mcp.server import Surface
from divingbell_inside import drawn_texts
from tests.surfaces.mcp.conftest import text_of

FIGURE = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\n"
PLAIN = FIGURE + "axes.bar(['north', 'south'], [3, 4]); axes.set_title('Sales'); plt.show()"


def find() -> dict[str, str]:
    return {"first_name": "Zebulonia", "email": "zeb@example.org"}


@pytest.fixture(scope="module")
async def bell(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(
            privacy="personal",
            privacy_rules={"images": "checked"},
            preload=["matplotlib.pyplot"],
            tools=[find],
        ) as bell:
            yield bell


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        await session.run("who = servers.host.find()")
        yield session


def pictures_in(result: Result) -> list[bytes]:
    return [each.data for each in result.outputs if isinstance(each.data, bytes)]


async def test_a_chart_without_finds_is_shown(session: Session) -> None:
    events = [event async for event in session.stream(PLAIN)]
    result = events[-1].result
    assert result is not None and result.status == "ok", result
    [picture] = pictures_in(result)
    assert picture.startswith(b"\x89PNG") and "held back" not in result.text
    shown = [each for event in events for each in event.outputs if each.type == "image/png"]
    assert [each.data for each in shown] == [picture] and shown[0].texts is None
    again = await session.run(FIGURE + "axes.imshow([[1, 2], [3, 4]]); figure")
    assert len(pictures_in(again)) == 1


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        ("axes.set_title('for ' + who['first_name'])", "NAME"),
        ("axes.set_xlabel(who['email'])", "EMAIL"),
        ("axes.bar([who['first_name'], 'b'], [3, 4])", "NAME"),
        ("axes.plot([1, 2], label=who['first_name']); axes.legend()", "NAME"),
        ("axes.annotate(who['email'], (0.5, 0.5))", "EMAIL"),
        ("axes.table([[who['first_name'], '1']])", "NAME"),
        ("figure.suptitle('zeb\\n4111 1111 1111 1111')", "CARD"),
        ("figure.text(0, 0, who['email'], rotation=45)", "EMAIL"),
        ("axes.pie([1, 2], labels=['a', who['first_name']])", "NAME"),
        (
            "from matplotlib import patheffects as p\n"
            "axes.set_title(who['email'], path_effects=[p.withStroke(linewidth=2)])",
            "EMAIL",
        ),
        ("q = axes.quiver([1], [1]); axes.quiverkey(q, 0.5, 0.5, 1, who['email'])", "EMAIL"),
        ("axes.inset_axes([0, 0, 0.5, 0.5]).set_title(who['first_name'])", "NAME"),
        ("axes.set_xticks([0.25, 0.55], ['a', who['first_name']], minor=True)", "NAME"),
    ],
)
async def test_a_chart_with_finds_is_held_back_and_says_why(
    session: Session, draw: str, kind: str
) -> None:
    result = await session.run(f"{FIGURE}{draw}\nplt.show()")
    assert result.status == "ok", result.error
    assert pictures_in(result) == []
    assert f"is held back: its texts have {kind} in them; code finds it in /work" in result.text


@pytest.mark.parametrize(
    "code",
    [
        "display({'image/png': b'\\x89PNG' + bytes(90)}, raw=True)",
        FIGURE + "import numpy\naxes.imshow(numpy.zeros((4, 4, 3))); plt.show()",
        FIGURE + "figure.figimage(__import__('numpy').zeros((4, 4, 4))); plt.show()",
        FIGURE + "for n in range(6000): figure.text(0, 0, str(n), visible=False)\nplt.show()",
        FIGURE + "figure.text(0, 0, 'x ' * 40_000, visible=False); plt.show()",
        "display({'image/svg+xml': '<svg/>'}, raw=True)",
    ],
)
async def test_what_nobody_can_say_the_texts_of_stays_held_back(
    session: Session, code: str
) -> None:
    result = await session.run(code, timeout=60)
    assert result.status == "ok", result.error
    assert pictures_in(result) == [] and "what can't be read as text is not shown" in result.text


async def test_a_client_gets_the_same_pictures(bell: Divingbell) -> None:
    surface = Surface(bell)
    async with Client(surface.server, cache=None) as client:

        async def kinds_of(code: str) -> tuple[list[str], str]:
            result: Any = await client.call_tool("execute_python", {"code": code})
            return [each.type for each in result.content], text_of(result)

        kinds, _ = await kinds_of(PLAIN)
        assert "image" in kinds
        kinds, text = await kinds_of(PLAIN.replace("Sales", "zeb@example.org"))
        assert "image" not in kinds and "its texts have EMAIL in them" in text
        kinds, _ = await kinds_of("display({'image/png': b'\x89PNG'}, raw=True)")
        assert "image" not in kinds
    await surface.close()


async def test_without_the_setting_charts_are_held_back(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Divingbell(privacy="personal", pool=0) as bell, bell.session() as session:
        assert pictures_in(await session.run(PLAIN)) == []


async def test_a_program_can_read_what_a_chart_says() -> None:
    async with Divingbell(pool=0) as bell, bell.session() as session:
        result = await session.run(PLAIN)
    [chart] = [each for each in result.outputs if each.type == "image/png"]
    assert chart.texts is not None and {"Sales", "north", "south"} <= set(chart.texts)
    assert "texts" not in chart.to_dict()


def test_what_was_shown_may_pass_again_and_has_an_end() -> None:
    pictures = Pictures(lambda texts: set(texts))
    assert pictures.problem_of(b"a", ["EMAIL"]) == "its texts have EMAIL in them"
    many = [f"KIND{number}" for number in range(9)]
    assert pictures.problem_of(b"a", many).endswith("KIND4 and others in them")
    assert pictures.problem_of(b"a", None) and not pictures.has(b"a")
    assert pictures.problem_of(b"a", []) == "" and pictures.problem_of(b"a", None) == ""
    for number in range(MOST_PICTURES):
        assert pictures.problem_of(b"%d" % number, ()) == ""
    assert not pictures.has(b"a") and pictures.has(b"0")


@pytest.mark.parametrize(
    ("texts", "raw"),
    [
        (["a", "b"], b"a\0b"),
        ([], b""),
        (["\ud800"], b"\\ud800"),
        (None, None),
        (["x"] * (drawn_texts.MOST_TEXTS + 1), None),
        (["x" * (drawn_texts.MOST_BYTES + 1)], None),
    ],
)
def test_texts_are_told_whole_or_not_at_all(texts: list[str] | None, raw: bytes | None) -> None:
    picture = drawn_texts.picture_of(b"png", texts)
    assert picture == b"png" and picture.texts == raw
