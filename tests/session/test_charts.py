"""Charts of libraries that want a browser, which the default profile does not have."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Result, Session

PACKAGES = ["plotly==7.1.0", "bokeh==3.9.2", "altair==6.3.0", "vl-convert-python==1.9.0.post1"]
SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><circle r='4'/></svg>"


@pytest.fixture(scope="module")
async def chartist() -> AsyncIterator[Divingbell]:
    async with Divingbell(packages=PACKAGES, pool=0, copy_after=0) as bell:
        yield bell


@pytest.fixture
async def session(chartist: Divingbell) -> AsyncIterator[Session]:
    async with chartist.session() as session:
        yield session


async def _shown(session: Session, code: str) -> Result:
    result = await session.run(code, timeout=60)
    assert result.status == "ok", result.error
    return result


@pytest.mark.parametrize("show", ["figure", "figure.show()"])
async def test_a_plotly_figure_is_kept_as_a_page(session: Session, show: str) -> None:
    code = f"import plotly.express as px\nfigure = px.bar(x=[1, 2], y=[3, 4])\n{show}"
    result = await _shown(session, code)
    path = f"/workspace/.outputs/cell-{result.cell}-1.html"
    assert result.text.startswith("[plotly figure (bar): text/html, ")
    assert result.text.endswith(f"kept in {path}]\n")
    assert b"plotly" in await session.files.get(path)


@pytest.mark.parametrize("show", ["chart", "show(chart)", "output_notebook(); show(chart)"])
async def test_a_bokeh_figure_is_kept_as_a_page(session: Session, show: str) -> None:
    code = (
        "from bokeh.plotting import figure, show, output_notebook\n"
        f"chart = figure(); line = chart.line([1, 2], [3, 4])\n{show}"
    )
    result = await _shown(session, code)
    path = f"/workspace/.outputs/cell-{result.cell}-1.html"
    assert result.text.startswith("[bokeh figure: text/html, ")
    assert result.text.endswith(f"kept in {path}]\n")
    assert b"Bokeh" in await session.files.get(path)


async def test_a_styled_table_is_shown_as_the_table(session: Session) -> None:
    code = "import pandas as pd\npd.DataFrame({'a': [1]}).style"
    assert (await _shown(session, code)).text == "   a\n0  1\n"


ALTAIR = (
    "import altair as alt, pandas as pd\n"
    "alt.Chart(pd.DataFrame({'a': [1, 2]})).mark_point().encode(x='a')"
)


async def test_an_altair_chart_is_drawn_where_its_library_can(session: Session) -> None:
    result = await _shown(session, ALTAIR)
    [image] = [output for output in result.outputs if output.type == "image/png"]
    assert isinstance(image.data, bytes) and image.data.startswith(b"\x89PNG")
    assert result.text == f"[image/png, {len(image.data):,} bytes, kept in {image.path}]\n"


async def test_an_altair_chart_that_cannot_be_drawn_is_kept_as_a_page(session: Session) -> None:
    hidden = "import sys, importlib.util\nfind = importlib.util.find_spec\n"
    hidden += "importlib.util.find_spec = lambda name: None if name == 'vl_convert' else find(name)"
    await _shown(session, hidden)
    result = await _shown(session, ALTAIR)
    assert result.text.startswith("[altair Chart: text/html, ")
    path = f"/workspace/.outputs/cell-{result.cell}-1.html"
    assert result.text.endswith(f"kept in {path}]\n")
    assert b"vega" in await session.files.get(path)


async def test_an_svg_is_drawn_where_a_library_can(session: Session) -> None:
    code = f'from IPython.display import SVG\nSVG("{SVG}")'
    result = await _shown(session, code)
    assert [output.type for output in result.outputs] == ["image/svg+xml", "image/png"]
    broken = await _shown(session, "display({'image/svg+xml': '<svg'}, raw=True)")
    assert "image/svg+xml, " in broken.text and "kept in" in broken.text
