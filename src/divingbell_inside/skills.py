"""Skills: functions that were saved, and are imported again in any session of their user.

`from skills import top_customers` asks the host for the code, once for each version. Sandboxes are
sealed before their user is known, so nothing of a user's can be mounted. What may be saved, and who
gets it, is decided by the host; nothing here is a wall.
"""

import base64
import importlib
import inspect
import os
import pathlib
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from divingbell_inside import layout, sources, tools
from divingbell_inside.results import ToolError

PACKAGE = "skills"
FILE = "<skill {}>"
"""The name of a skill's code in tracebacks."""
FOLDER = f"{layout.WORKSPACE}/.skills"
"""The folder that `path` writes to."""
_MAIN = "__main__"
_ABOUT = "Functions that were saved with save_skill, one module each."


def save_skill(
    name: str, code_or_function: Any, description: str, example: str | None = None
) -> Any:
    """Save a function, so that later sessions have it: `from skills import NAME`.

    name: such as "top_customers"; the function has the same name.
    code_or_function: the function, or the text of a module that has it. It has a docstring and uses
    nothing from outside: values are parameters, modules and tools are imported in it.
    description: what it does and when to use it; searches go by it.
    example: code that calls it, such as "top_customers(3)"; by default the `>>>` lines of its
    docstring. It is run in a fresh sandbox, where tools answer as they did in this session; where
    personal values are hidden, tokens such as [EMAIL_482715] stand in their place there.

    Saving under a name that is there makes a new version; the earlier ones are kept.
    """
    code = code_or_function if isinstance(code_or_function, str) else source_of(code_or_function)
    given = {"name": name, "code": code, "description": description}
    saved = tools.call("save_skill", given | ({} if example is None else {"example": example}))
    if isinstance(saved, tools.Pending):
        saved.add_done_callback(lambda _: forget())
    forget()
    return saved


def search_skills(query: str = "", detail_level: str = "with_description", limit: int = 10) -> Any:
    """Find skills by what they do, best first; without a query, list them by name.

    detail_level: "name_only", "with_description", or "full" (signature, example and tools too).
    limit: how many, up to 100.
    """
    given = {"query": query, "detail_level": detail_level, "limit": limit}
    return tools.call("search_skills", given)


FUNCTIONS = (save_skill, search_skills)
NAMES: dict[str, Any] = {function.__name__: function for function in FUNCTIONS}


# The source of a function


def source_of(function: Any) -> str:
    """Return the source of a function, after imports of the modules and tools that it uses.

    Raises:
        TypeError: it is no function of Python.
        ValueError: its source is not known.
    """
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        raise TypeError(
            "save_skill takes a function that was made with `def`, or the text of a module, not "
            f"{type(function).__name__}"
        )
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ValueError(
            f"the source of {function.__name__} is not known ({error}): give it as text"
        ) from None
    imports = sorted(set(_imports(function)))
    return "\n".join([*imports, "", "", source]) if imports else source


def _imports(function: types.FunctionType) -> Iterator[str]:
    for name in _global_names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            shown = value.__name__
            yield f"import {shown}" if shown == name else f"import {shown} as {name}"
            continue
        module, known = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if not isinstance(module, str) or not isinstance(known, str) or module == _MAIN:
            continue
        place = _place_of(value, module, known)
        if place is not None:
            yield f"from {place} import {known}" + ("" if known == name else f" as {name}")


def _place_of(value: Any, module: str, name: str) -> str | None:
    """Return where a name is imported from; None if it can't be imported."""
    above, _, last = module.rpartition(".")
    # The module of a tool has its name, and is imported from as its package.
    is_tool = last == name and above.partition(".")[0] in (tools.PACKAGE, PACKAGE)
    found = getattr(sys.modules.get(module), name, None) if name.isidentifier() else None
    if found is value or (is_tool and _is_made_in(value, module, name)):
        return above if is_tool else module
    return None


def _is_made_in(value: Any, module: str, name: str) -> bool:
    """Whether a function is what a module calls so, also one that is imported no more: when the
    list of tools was read again, the modules of all tools are others."""
    names = value.__globals__ if isinstance(value, types.FunctionType) else {}
    return names.get("__name__") == module and names.get(name) is value


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


# The package `skills`


class _Loader(ExecutionLoader):
    """The source of a skill, which the host has told."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._source = source

    def get_filename(self, fullname: str) -> str:
        return self._file

    def get_source(self, fullname: str) -> str:
        return self._source


class _Finder(MetaPathFinder):
    """Finds `skills.NAME`, by asking the host."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        above, _, skill = name.partition(".")
        if above != PACKAGE or not skill or _is_private(skill) or "." in skill:
            return None
        told = _asked(skill, name)
        if told["code"] is None:
            raise ModuleNotFoundError(
                f"the skill {told['name']!r} is no module: skills.path({told['name']!r}) puts its "
                "files into a folder and returns that. SKILL.md there says how to use it",
                name=name,
            )
        file = FILE.format(skill)
        sources.remember(file, told["code"])
        return ModuleSpec(name, _Loader(file, told["code"]), origin=file)


def _is_private(name: str) -> bool:
    """Whether no skill has this name. One that begins with a digit has `_` before it in code."""
    return name.startswith("_") and not name[1:2].isdigit()


def _asked(skill: str, module: str, *, files: bool = False) -> Any:
    try:
        return tools.call_now("load_skill", {"name": skill, "files": files})
    except ToolError as error:
        if error.code != "tool_unknown":
            raise ImportError(str(error), name=module) from None
        raise ModuleNotFoundError(str(error), name=module) from None


def _offered() -> list[str]:
    """Return the names that skills have in code."""
    found = tools.call_now("search_skills", {"detail_level": "name_only", "limit": 100})
    return [item["name"].replace("-", "_") for item in found]


class _Skills(types.ModuleType):
    """`from skills import NAME` gives the function of that name, or the module if it has none."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{_ABOUT}\n\nThere are: {', '.join(_offered()) or 'none yet'}"

    def __getattr__(self, name: str) -> Any:
        # `help` looks at all that `dir` lists: nobody has asked for the code of those.
        if _is_private(name) or sys._getframe(1).f_globals.get("__name__") == inspect.__name__:
            raise AttributeError(name)
        # What is raised is no AttributeError: Python would say "cannot import name", and not why.
        module = importlib.import_module(f"{PACKAGE}.{name}")
        return getattr(module, name, module)

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its parent: here it is the function that counts.
        if isinstance(value, types.ModuleType):
            value = value.__dict__.get(name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return sorted([*_offered(), path.__name__])


def path(name: str) -> pathlib.Path:
    """Put all files of a skill into a folder of this session, and return the folder.

    For skills that are more than one function: SKILL.md there says how its scripts are run.
    """
    told = _asked(name, f"{PACKAGE}.{name}", files=True)
    folder = pathlib.Path(FOLDER, told["name"])
    for each, content in told["files"].items():
        file = folder / each
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))
        if each.startswith("scripts/"):
            os.chmod(file, 0o755)
    return folder


def install() -> None:
    """In the zygote: make `skills` importable."""
    package = _Skills(PACKAGE)
    package.__dict__.update(NAMES | {path.__name__: path})
    package.__path__ = []
    package.__spec__ = ModuleSpec(PACKAGE, None, is_package=True)
    sys.modules[PACKAGE] = package
    sys.meta_path.insert(0, _Finder())


def forget() -> None:
    """Have the next import of each skill ask again."""
    package = sys.modules.get(PACKAGE)
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
        if package is not None:
            package.__dict__.pop(name.partition(".")[2], None)
