"""IPython's shell, cut down to what a sandbox needs: formatters, magics and the transformer."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell as _InteractiveShell
from traitlets import Type
from traitlets.config import Config

from divingbell_inside import drawing, stumbles

# IPython's own annotations are partial: half of what is used here would not pass a checker.
InteractiveShell: Any = _InteractiveShell

Publish = Callable[[dict[str, Any], str | None, bool], None]
MAX_PREVIEW = 120
NETWORK = ("network", "")
NO_NETWORK = "There is no network in the sandbox: only tools of MCP servers reach out."
NO_PACKAGES = (
    "There is no network in the sandbox, so packages can't be installed here. "
    'Those of the profile are importable; more are added with packages = ["…"] '
    "in divingbell.toml."
)


def make(
    module: ModuleType,
    publish: Publish,
    clear: Callable[[bool], None],
    show_failure: Callable[[BaseException], None],
) -> Any:
    """Return the shell, with `module` as `__main__` and our own way out for displays."""

    class Publisher(DisplayPublisher):
        def publish(  # type: ignore[override]
            self,
            data: Any,
            metadata: Any = None,
            *,
            transient: Any = None,
            update: bool = False,
            **_: Any,
        ) -> None:
            publish(data, (transient or {}).get("display_id"), update)

        def clear_output(self, wait: bool = False) -> None:
            clear(wait)

    class Shell(_InteractiveShell):
        display_pub_class = Type(Publisher)

        def system(self, cmd: str) -> None:
            # Straight to descriptor 1, in order with everything else; the default wants a terminal.
            expand: Any = self.var_expand  # IPython has no types for it
            command = expand(cmd, depth=1)
            status = subprocess.call(command, shell=True, executable=os.environ.get("SHELL"))
            self.user_ns["_exit_code"] = 128 - status if status > 128 else status
            if status:
                print(_how_it_ended(status), flush=True)
            if status and stumbles.program_stumble(command) == NETWORK:
                print(NO_NETWORK, file=sys.stderr)

        def showtraceback(self, exc_tuple: Any = None, *_: Any, **__: Any) -> None:
            error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
            if error is not None:
                show_failure(error)

        def enable_gui(self, gui: Any = None) -> None:
            if gui not in (None, "inline"):
                raise RuntimeError(
                    f"there is no screen for {gui!r} here; figures show by themselves"
                )

    config = Config()
    config.HistoryManager.enabled = False  # it would keep a thread and a database
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 0
    config.InteractiveShell.banner1 = ""
    made: Any = Shell.instance(config=config, user_module=module)
    drawing.register(made.display_formatter)
    drawing.install(lambda bundle: publish(bundle, None, False))
    for name in ("bash", "sh"):
        made.register_magic_function(_script(name), "cell", name)
    for name in ("pip", "conda", "mamba", "micromamba", "uv"):
        made.register_magic_function(lambda _line: print(NO_PACKAGES), "line", name)
    # What IPython put in the way of Python's own.
    sys.displayhook = sys.__displayhook__
    for name in ("open", "exit", "quit"):
        module.__dict__.pop(name, None)
    return made


def _how_it_ended(status: int) -> str:
    """Say it as a line of output: a command that fails in silence looks like one that did not."""
    return f"[exit status {status}]" if status > 0 else f"[ended by signal {-status}]"


def _script(name: str) -> Callable[[str, str], None]:
    def run(line: str, cell: str) -> None:
        """Run the cell as a shell script (IPython's own magic would leave a thread behind)."""
        sys.stdout.flush()
        subprocess.run([name, *line.split()], input=cell.encode(), check=True)

    return run


def bundle_of(shell: Any, value: Any) -> dict[str, Any]:
    """Return the MIME bundle of a value; empty when the value has shown itself."""
    if type(value) in (int, float, bool, str):
        try:
            return {"text/plain": repr(value)}
        except ValueError:  # Python refuses to print an integer of very many digits
            return {"text/plain": f"<int of {value.bit_length()} bits>"}
    bundle, _ = shell.display_formatter.format(value)
    return dict(bundle)


def summary_of(value: Any) -> dict[str, Any]:
    """Say briefly what a variable holds, at a bounded cost whatever it is."""
    kind = type(value)
    found: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}"[:200]}
    if kind.__module__ == "builtins":
        found["type"] = kind.__qualname__
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
            found["shape"] = list(shape)[:16]
        elif isinstance(value, str | bytes | bytearray | list | tuple | dict | set | frozenset):
            found["length"] = len(value)
        if kind in (int, float, bool, type(None)):
            found["preview"] = repr(value)[:MAX_PREVIEW]
        elif kind is str:
            found["preview"] = (
                repr(value[:MAX_PREVIEW]).encode("utf-8", "backslashreplace").decode()
            )
    except Exception as error:  # an object of the user's may do anything when it is looked at
        found["preview"] = f"<{type(error).__name__}>"
    return found


def typical() -> list[str]:
    """Cells such as people write, of what is loaded."""
    cells = ["1 + 1", "undefined"]
    if {"pandas", "matplotlib.pyplot"} <= sys.modules.keys():
        cells += [
            "import pandas as pd, numpy as np, matplotlib.pyplot as plt\n"
            "df = pd.DataFrame({'a': [1, 2]})\ndf.a.sum()",
            "df",
        ]
    return cells


def touch(shell: Any) -> None:
    """Write to the memory that a first cell writes to, while the session still waits for its user.

    The first write to a page that is shared with the zygote costs a copy of it; together they are
    most of the time of a first result.
    """
    pandas = sys.modules.get("pandas")
    names: dict[str, Any] = {"pandas": pandas}
    source = "table = pandas.DataFrame({'a': [1, 2]})\ntable.a.sum()" if pandas else "1 + 1"
    tree = ast.parse(source)
    exec(compile(tree, "<touch>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    bundle_of(shell, names["table"].a.sum() if pandas else 2)


def warm_up(shell: Any) -> None:
    """Load what displays load lazily, so that every session inherits it."""
    pandas, pyplot = sys.modules.get("pandas"), sys.modules.get("matplotlib.pyplot")
    if pandas is not None:
        table = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "z"]})
        bundle_of(shell, table)
        table.groupby("c").a.sum().describe()
        bundle_of(shell, table.describe())
    if pyplot is not None:
        figure, axes = pyplot.subplots()
        axes.plot([1, 2, 3], label="warm")
        axes.set_title("warm")
        axes.legend()
        bundle_of(shell, figure)
        pyplot.close("all")
    shell.transform_cell("%time 1\n!ls\n")


def no_input(prompt: object = "", /) -> NoReturn:
    """In the place of `input`."""
    raise EOFError(
        "input() is not available here: nobody can type into a sandbox. "
        "Put the value into the code, or pass it in as a variable."
    )
