"""Settings of libraries that print tables and draw, for the reader they have here.

A model reads wider lines than a terminal has, and nobody here has a browser. Each library is told
when it is imported, so that it costs those nothing who do not use it, and what the code itself
sets afterwards holds.
"""

import contextlib
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from divingbell_inside import draw, drawn_texts, layout

DRAWING_TIMEOUT = 20.0
"""Seconds. A chart takes 0.8 of them, most of it to load the library."""
_PNG = b"\x89PNG\r\n\x1a\n"

Display = Callable[[Any], None]
Tell = Callable[[Any, Display], None]


def install(display: Display) -> None:
    """Tell the libraries that are loaded, and the others when they are."""
    for name, tell in _TOLD.items():
        if name in sys.modules:
            _set_up(tell, sys.modules[name], display)
    sys.meta_path.insert(0, _Teller(display))


def _set_up(tell: Tell, module: ModuleType, display: Display) -> None:
    # Another version, or a file of the user's with this name: its import must not fail for us.
    with contextlib.suppress(Exception):
        tell(module, display)


class _Teller(MetaPathFinder):
    """Lets others find a library, and has it told once it is loaded."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        tell = _TOLD.get(name)
        if tell is None:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = _first(finder.find_spec(name, path, target) for finder in others)
        if spec is not None and spec.loader is not None:
            self._listen(spec.loader, tell)
        return spec

    def _listen(self, loader: Any, tell: Tell) -> None:
        execute = loader.exec_module

        @functools.wraps(execute)
        def execute_and_tell(module: ModuleType) -> None:
            execute(module)
            _set_up(tell, module, self._display)

        loader.exec_module = execute_and_tell


def _first(specs: Iterable[ModuleSpec | None]) -> ModuleSpec | None:
    return next((spec for spec in specs if spec is not None), None)


# Tables


def _tell_pandas(pandas: Any, display: Display) -> None:
    pandas.set_option("display.width", layout.TABLE_WIDTH)
    pandas.set_option("display.max_columns", layout.TABLE_COLUMNS)
    pandas.set_option("display.max_colwidth", layout.TABLE_CELL)


def _tell_numpy(numpy: Any, display: Display) -> None:
    numpy.set_printoptions(linewidth=layout.TABLE_WIDTH)


def _print_styler(styler: Any, printer: Any, cycle: bool) -> None:
    """A styled table has no text of its own; the table has."""
    printer.text(repr(styler.data))


# Charts for a browser


def _tell_plotly(module: Any, display: Display) -> None:
    """Show figures as a page, where plotly would look for a notebook or a browser."""

    class Renderer(module.ExternalRenderer):  # type: ignore[misc]
        def render(self, figure: Any) -> None:
            page = importlib.import_module("plotly.io").to_html
            kinds = ", ".join(sorted({trace.get("type", "scatter") for trace in figure["data"]}))
            display(
                {
                    "text/html": page(figure, include_plotlyjs="cdn", validate=False),
                    "text/plain": f"<plotly figure ({kinds})>",
                }
            )

    module.renderers["divingbell"] = Renderer()
    if "PLOTLY_RENDERER" not in os.environ:
        module.renderers.default = "divingbell"


def _tell_bokeh(bokeh_io: Any, display: Display) -> None:
    """`show` shows, where bokeh would write a file for a browser."""

    def show(shown: Any, state: Any, notebook_handle: Any) -> None:
        display(_bundle_of_bokeh(shown))

    def show_application(*_: Any) -> None:
        raise RuntimeError("there is no browser for a Bokeh application here; show a figure")

    def load(*_: Any) -> None:
        """Nothing is loaded: each page loads what it needs."""

    bokeh_io.install_notebook_hook("jupyter", load, show, show_application, overwrite=True)
    bokeh_io.state.curstate().output_notebook("jupyter")


def _bundle_of_bokeh(shown: Any, *_: Any) -> dict[str, str]:
    page = importlib.import_module("bokeh.embed").file_html
    resources = importlib.import_module("bokeh.resources").CDN
    return {
        "text/html": page(shown, resources, title="Bokeh"),
        "text/plain": f"<bokeh {type(shown).__name__}>",
    }


def _print_altair(chart: Any, printer: Any, cycle: bool) -> None:
    printer.text(f"<altair {type(chart).__name__}>")


def _altair_as_png(chart: Any) -> bytes | None:
    return _drawn("vega", lambda: chart.to_json().encode())


# Images


def _figure_as_png(figure: Any) -> bytes | None:
    from IPython.core import pylabtools

    drawing: Any = pylabtools
    png: bytes | None = drawing.print_figure(figure, "png")
    return png


def _tell_pylabtools(pylabtools: Any, display: Display) -> None:
    """Have a figure that is drawn for us tell its texts. pyplot registers what draws it anew."""
    pylabtools.print_figure = _telling_texts(pylabtools.print_figure)


def _telling_texts(print_figure: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(print_figure)
    def print_and_tell(figure: Any, fmt: str = "png", *arguments: Any, **options: Any) -> Any:
        if fmt != "png" or arguments:
            return print_figure(figure, fmt, *arguments, **options)
        with drawn_texts.noted() as texts:
            png = print_figure(figure, fmt, **{**options, "base64": False})
        if not png:
            return png
        return drawn_texts.picture_of(png, None if drawn_texts.has_photographs(figure) else texts)

    return print_and_tell


def png_of_svg(svg: bytes) -> bytes | None:
    """Draw an SVG with what the profile has for it; None if it has nothing, or can't."""
    return _drawn("svg", lambda: svg)


def _drawn(kind: str, source: Callable[[], bytes]) -> bytes | None:
    if draw.library_for(kind) is None:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(draw.__file__), kind],
            input=source(),
            capture_output=True,
            timeout=DRAWING_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):  # no process or memory to spare: it is kept
        return None
    return done.stdout if done.stdout.startswith(_PNG) else None


_TOLD: dict[str, Tell] = {
    "pandas": _tell_pandas,
    "numpy": _tell_numpy,
    "plotly.io._renderers": _tell_plotly,
    "bokeh.io": _tell_bokeh,
    "IPython.core.pylabtools": _tell_pylabtools,
}


def register(formatter: Any) -> None:
    """Teach IPython's display formatter what else can be shown."""
    plain, png = (formatter.formatters[kind] for kind in ("text/plain", "image/png"))
    plain.max_width = layout.TABLE_WIDTH
    plain.for_type_by_name("pandas.io.formats.style", "Styler", _print_styler)
    png.for_type_by_name("matplotlib.figure", "Figure", _figure_as_png)
    for version in ("v5", "v6"):
        module = f"altair.vegalite.{version}.api"
        plain.for_type_by_name(module, "TopLevelMixin", _print_altair)
        png.for_type_by_name(module, "TopLevelMixin", _altair_as_png)
    bundles = formatter.mimebundle_formatter
    bundles.for_type_by_name("bokeh.models.layouts", "LayoutDOM", _bundle_of_bokeh)
