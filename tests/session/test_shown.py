"""What a model or a terminal gets to see of displays, and where the rest is."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Result, Session

SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><circle r='4'/></svg>"


@pytest.fixture(scope="module")
async def bare() -> AsyncIterator[Divingbell]:
    """Where nothing is imported before the code does it."""
    async with Divingbell(pool=0, preload=[]) as bell:
        yield bell


async def _shown(session: Session, code: str) -> Result:
    result = await session.run(code)
    assert result.status == "ok", result.error
    return result


@pytest.mark.parametrize(
    ("code", "name", "kind", "ending"),
    [
        ("HTML('<b>x</b>')", "HTML: ", "text/html", ".html"),
        (f'SVG("{SVG}")', "SVG: ", "image/svg+xml", ".svg"),
        ("Markdown('**x**')", "Markdown: ", "text/markdown", ".md"),
        ("Javascript('1')", "Javascript: ", "application/javascript", ".js"),
        ("display({'text/html': '<b>x</b>'}, raw=True)", "", "text/html", ".html"),
        (
            "display({'application/vnd.vegalite.v5+json': {'a': 1}, 'text/plain': 'a chart'}, "
            "raw=True)",
            "a chart: ",
            "application/vnd.vegalite.v5+json",
            ".json",
        ),
        ("Widget()", "Widget: ", "text/html", ".html"),
    ],
)
async def test_what_cannot_be_seen_is_named_and_kept(
    session: Session, code: str, name: str, kind: str, ending: str
) -> None:
    imports = "from IPython.display import HTML, SVG, Markdown, Javascript\n"
    widget = "class Widget:\n    def _repr_html_(self): return '<b>x</b>'\n"
    result = await _shown(session, imports + widget + code)
    path = f"/workspace/.outputs/cell-{result.cell}-1{ending}"
    [kept] = [output for output in result.outputs if output.path]
    assert (kept.type, kept.path) == (kind, path)
    raw = kept.data.encode() if isinstance(kept.data, str) else kept.data
    assert await session.files.get(path) == raw
    size = len(raw)
    assert result.text == f"[{name}{kind}, {size} bytes, can't be seen here; kept in {path}]\n"
    read = await _shown(session, f"open({path!r}, 'rb').read().decode()")
    assert str(read.value).encode() == raw


async def test_what_has_text_of_its_own_is_shown_by_it(session: Session) -> None:
    code = (
        "from IPython.display import JSON\nimport pandas as pd\n"
        "display(JSON({'a': 1}))\ndisplay(pd.DataFrame({'a': [1]}))\nobject()"
    )
    result = await _shown(session, code)
    assert result.text.startswith('{"a": 1}\n   a\n0  1\n<object at 0x')
    assert not any(output.path for output in result.outputs)


async def test_an_image_comes_once_and_is_kept(session: Session) -> None:
    result = await _shown(session, "from PIL import Image\nImage.new('RGB', (9, 9), 'red')")
    [image] = result.outputs
    assert image.type == "image/png"
    assert image.path == f"/workspace/.outputs/cell-{result.cell}-1.png"
    assert await session.files.get(image.path) == image.data
    assert result.text == f"[image/png, {len(image.data)} bytes, kept in {image.path}]\n"


async def test_a_figure_that_is_the_value_is_shown_once(session: Session) -> None:
    code = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nfigure"
    assert [output.type for output in (await _shown(session, code)).outputs] == ["image/png"]


async def test_a_display_that_is_updated_keeps_its_file(session: Session) -> None:
    code = (
        "from IPython.display import HTML\n"
        "handle = display(HTML('<b>1</b>'), display_id=True)\n"
        "for i in range(300): handle.update(HTML(f'<b>{i}</b>'))"
    )
    result = await _shown(session, code)
    files = [file.path for file in await session.files.list()]
    assert files == [f".outputs/cell-{result.cell}-1.html"]
    assert await session.files.get(files[0]) == b"<b>299</b>"


async def test_a_cell_keeps_a_hundred_displays(session: Session) -> None:
    code = "from IPython.display import HTML\nfor i in range(105): display(HTML('<b>'))"
    result = await _shown(session, code)
    assert result.text.count("kept in /workspace") == 100
    assert result.text.count("it is not kept: a cell keeps 100 displays") == 5
    assert len(await session.files.list()) == 100


async def test_a_broken_form_is_told_and_the_others_are_shown(session: Session) -> None:
    code = "class Broken:\n    def _repr_html_(self): raise ValueError('oh')\nBroken()"
    result = await _shown(session, code)
    assert "ValueError: oh\n" in result.text
    assert "<__main__.Broken at 0x" in result.text


async def test_a_display_ends_the_line_before_it(session: Session) -> None:
    assert (await _shown(session, "print('so', end='')\n1")).text == "so\n1\n"


WIDE = "pd.DataFrame([range(1000, 1050)], columns=[f'column{i}' for i in range(50)])"


@pytest.mark.parametrize("preloaded", [True, False])
async def test_tables_are_as_wide_as_they_need(
    bell: Divingbell, bare: Divingbell, preloaded: bool
) -> None:
    async with (bell if preloaded else bare).session() as session:
        for show in (WIDE, f"print({WIDE})"):
            header, row = (await _shown(session, f"import pandas as pd\n{show}")).text.splitlines()
            assert header.split() == [f"column{i}" for i in range(50)]
            assert row.split() == ["0", *map(str, range(1000, 1050))]
        cell = await _shown(session, "pd.DataFrame({'a': ['word ' * 20]})")
        assert "word " * 20 in cell.text
        array = await _shown(session, "import numpy as np\nnp.arange(100)")
        assert len(array.text.splitlines()) == 1


async def test_nothing_is_imported_to_make_tables_wide(bare: Divingbell) -> None:
    code = "import sys\n[name for name in ('numpy', 'pandas', 'matplotlib') if name in sys.modules]"
    assert (await bare.execute(code)).value == []


async def test_what_the_code_chooses_holds(bare: Divingbell) -> None:
    async with bare.session() as session:
        code = f"import pandas as pd\npd.set_option('display.width', 80)\n{WIDE}"
        assert len((await _shown(session, code)).text.splitlines()) > 10
        assert len((await _shown(session, WIDE)).text.splitlines()) > 10


async def test_a_module_of_the_users_with_the_name_of_a_library_is_its_own(
    bare: Divingbell,
) -> None:
    async with bare.session() as session:
        await session.files.put("pandas.py", "def set_option(*_): raise ValueError\nmine = 1")
        assert (await _shown(session, "import pandas\npandas.mine")).value == 1


async def test_long_lists_take_few_lines(session: Session) -> None:
    assert (await _shown(session, "list(range(100))")).text == f"{list(range(100))}\n"
    records = "[{'id': i, 'name': 'x' * 30} for i in range(50)]"
    assert len((await _shown(session, records)).text.splitlines()) == 50
