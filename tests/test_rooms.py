"""Which room may import which: downwards only, as docs/architecture.md draws it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src"
LAYERS = (
    (
        "amounts",
        "command",
        "disguises",
        "errors",
        "escapes",
        "logs",
        "models",
        "notebook",
        "principal",
        "syntax",
        "text",
        "tool",
    ),
    ("host", "shares"),
    ("settings", "journal", "border"),
    ("sandbox", "gateway", "review", "audit"),
    ("session", "skills"),
    ("parts",),
    ("scale",),
    ("app", "events"),
    ("portal", "agent", "client", "datasets"),
    ("sync", "surfaces", "surfaces.mcp", "surfaces.http", "promises", "doctor"),
    ("promises.check",),
    ("surfaces.cli",),
    ("scale.serve",),
    ("", "__main__"),
)
"""From the bottom. A room imports what is below it, and rooms beside it that do not import it."""
BESIDE = {
    ("agent", "datasets"),
    ("border", "settings"),
    ("command", "models"),
    ("border", "settings"),
    ("disguises", "text"),
    ("escapes", "text"),
    ("logs", "principal"),
    ("models", "errors"),
    ("models", "notebook"),
    ("surfaces.http", "surfaces"),
    ("surfaces.http", "surfaces.mcp"),
    ("surfaces.mcp", "surfaces"),
    ("tool", "text"),
}
"""The rooms of one layer that import each other, always in this direction."""
INSIDE = {
    "columns": ("session",),
    "parcels": ("session",),
    "drawn_texts": ("session", "promises.check"),
    "frames": ("border", "session", "settings", "gateway", "skills", "scale", "promises.check"),
    "layout": (
        "notebook",
        "host",
        "sandbox",
        "review",
        "session",
        "agent",
        "client",
        "surfaces.mcp",
        "surfaces.cli",
    ),
    "landlock": ("host",),
    "personal_names": ("border",),
    "seccomp": ("sandbox",),
    "syscalls": ("sandbox",),
    "tokens": ("session",),
    "values": ("models", "session", "scale", "surfaces.mcp", "client", "surfaces.http"),
    "": ("promises.check",),
}
"""Modules of divingbell_inside that the host imports, and where: it runs nothing else of them."""
OPEN_TO_SURFACES = {
    "gateway.callers",
    "gateway.catalog.catalog",
    "gateway.catalog.descriptions",
    "gateway.context",
    "gateway.discovery",
    "gateway.functions.host_tools",
    "gateway.gateway",
    "gateway.requests",
    "gateway.policy.approval_form",
    "gateway.policy.approvals",
    "gateway.sign_in.oauth",
    "gateway.upstream.fleet",
    "session.base",
    "session.calls",
    "session.inputs",
    "session.needs",
    "session.options",
    "session.ownership",
}
"""What surfaces use of the gateway and of sessions: never a connection, nor how a session is made.
The command `image` also makes the roots of containers."""


def _modules() -> dict[str, Path]:
    """Every module of the host, without the attacks, which run inside."""
    found = {}
    for path in (ROOT / "divingbell").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not name.startswith(("divingbell.promises.probes", "divingbell.promises.servers")):
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()


def _room(module: str) -> tuple[str, int]:
    """The room that a module is in, and its layer."""
    name = module.removeprefix("divingbell").lstrip(".")
    fitting = [
        (room, layer)
        for layer, rooms in enumerate(LAYERS)
        for room in rooms
        if name == room or (room and name.startswith(f"{room}."))
    ]
    assert fitting, f"{module} is in no room of docs/architecture.md"
    return max(fitting, key=lambda found: len(found[0]))


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                is_module = inner in MODULES or (ROOT / f"{inner.replace('.', '/')}.py").exists()
                yield inner if is_module else node.module


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_downwards_only(module: str) -> None:
    room, layer = _room(module)
    for imported in _imported(MODULES[module]):
        if imported.partition(".")[0] == "divingbell" and imported != "divingbell":
            below, its_layer = _room(imported)
            is_fine = below == room or its_layer < layer or (room, below) in BESIDE
            assert is_fine, f"{module} imports {imported}, which is above it"


@pytest.mark.parametrize("module", MODULES)
def test_what_runs_inside_is_imported_where_the_table_says(module: str) -> None:
    for imported in _imported(MODULES[module]):
        package, _, name = imported.partition(".")
        if package == "divingbell_inside":
            assert _room(module)[0] in INSIDE.get(name, ()), f"{module} imports {imported}"


def test_one_file_knows_the_model_layer() -> None:
    """Another library in its place is then a change of one file, and nothing else waits for it."""
    assert [
        module
        for module, path in MODULES.items()
        if any(each.partition(".")[0] == "pydantic_ai" for each in _imported(path))
    ] == ["divingbell.agent.providers"]


def test_only_the_files_of_ray_import_it() -> None:
    found = {
        module.removeprefix("divingbell.")
        for module, path in MODULES.items()
        if any(each.partition(".")[0] == "ray" for each in _imported(path))
    }
    others = {module for module in found if not module.startswith("scale.ray_")}
    assert others == {"scale.ray", "scale.serve"}


def test_what_runs_inside_imports_nothing_of_the_host() -> None:
    for path in (ROOT / "divingbell_inside").rglob("*.py"):
        assert not [each for each in _imported(path) if each.partition(".")[0] == "divingbell"]


@pytest.mark.parametrize("module", [name for name in MODULES if ".surfaces." in name])
def test_surfaces_use_what_is_open_to_them(module: str) -> None:
    for imported in _imported(MODULES[module]):
        name = imported.removeprefix("divingbell.")
        if name.startswith(("gateway", "session")):
            assert name in OPEN_TO_SURFACES, f"{module} imports {imported}"
        if name.startswith("sandbox") and name != "sandbox.registry":  # the names of backends
            assert module == "divingbell.surfaces.cli.image", f"{module} imports {imported}"


def _drawn() -> list[str]:
    """The blocks of docs/architecture.md that draw the rooms, and the layers."""
    [_, after] = (ROOT.parent / "docs/architecture.md").read_text("utf-8").split("## The rooms\n")
    return [block.removeprefix("text\n") for block in after.split("```")[1:4:2]]


def test_the_page_draws_every_room_and_no_other() -> None:
    drawn, above = set(), [""]
    for line in _drawn()[0].split("src/divingbell_inside/")[0].splitlines()[1:]:
        name, depth = line.split()[0] if line.strip() else "", (len(line) - len(line.lstrip())) // 2
        if name.endswith("/"):
            above[depth:] = [above[depth - 1] + name]
            drawn.add(above[depth].rstrip("/"))
    folders = {
        path.parent.relative_to(ROOT / "divingbell").as_posix()
        for path in MODULES.values()
        if path.name == "__init__.py"
    }
    data = {".", "host/profiles", "gateway/search/encoders"}
    assert drawn == folders - data


def test_the_page_draws_the_layers_as_they_are_kept() -> None:
    lines = [line.split("(")[0].split() for line in _drawn()[1].splitlines() if line.strip()]
    for names, layer in zip(reversed(lines), LAYERS, strict=False):
        assert set(names) - {"…"} <= set(layer), names
    assert len(lines) == len(LAYERS) - 1  # without the package itself
