"""Writes src/divingbell/sync.py: the names of the library without `await`. `./dev generate`.

Each class there is the face (divingbell.portal) of an asynchronous one. Signatures, docstrings and
types are taken from the source of that, so there is nothing to keep in step by hand; a test
compares the file with what this makes.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
TARGET = SOURCE / "divingbell" / "sync.py"


@dataclass(frozen=True)
class Face:
    """A class to make: its name, and those that it is the face of, the nearest first."""

    name: str
    of: tuple[str, ...]
    """`module:class`. What the first does not say, the next does."""
    doc: str
    base: str = "Face"
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


FACES = (
    Face(
        "OpenFile",
        ("session.files:OpenFile", "session.base:OpenFileHandle"),
        "A file that is being read: iterate over it for its content, in pieces.",
        base="Iterated",
        without=("aclose",),
    ),
    Face("Files", ("session.files:Files", "session.base:FilesHandle"), "The files of a session."),
    Face(
        "CommandHandle",
        ("session.commands.handle:StartedHandle", "session.base:CommandHandle"),
        "A command that runs, or has run.",
    ),
    Face("Session", ("session.session:Session", "session.base:SessionHandle"), "A session."),
    Face(
        "Gateway",
        ("gateway.gateway:Gateway",),
        "The MCP servers, and their tools.",
        only=("add", "remove", "search", "servers", "tools"),
    ),
    Face(
        "Skills",
        ("skills.skills:Skills",),
        "The skills that are kept on this machine, each user's by themselves.",
        without=("keep", "searches", "stores"),
    ),
    Face(
        "Divingbell",
        ("app:Divingbell",),
        "A sandbox service for this process: `with Divingbell() as bell: …`",
        base="Running",
        without=("border", "close", "journal", "ledgers", "owned", "ready", "start", "starting"),
    ),
)
"""Each after those that it names."""
PLAIN = {"AsyncIterator": "Iterator", "Approver": "PlainApprover"}
"""Types that are others here."""
AWAITED = ("on_approval",)
"""Arguments that are functions, which the library awaits."""
DECORATORS = ("tool",)
"""Methods that return what takes a function: that is called on the loop, when it is called."""
SAME = {"FilesHandle": "Files", "OpenFileHandle": "OpenFile", "SessionHandle": "Session"}
"""Names of the interfaces that the classes here stand for, too."""
HEADER = '''"""The library without `await`: made by scripts/make_sync.py, so don't change it here.

The names are those of `divingbell`. Everything runs on an event loop in a thread of its own, which
any thread may call. Ctrl-C interrupts the cell that is waited for.
"""
'''


class Module:
    """The source of a module: its classes, and where its names come from."""

    def __init__(self, name: str) -> None:
        self.name = f"divingbell.{name}"
        path = SOURCE / self.name.replace(".", "/")
        self.tree = ast.parse(path.with_suffix(".py").read_text("utf-8"))
        self.imports = {
            alias.asname or alias.name: node.module
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    def class_of(self, name: str) -> ast.ClassDef:
        return next(
            node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name
        )


@dataclass
class Writer:
    """The file that is being made, and the imports that it needs."""

    imports: dict[str, set[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def use(self, module: str, name: str) -> None:
        self.imports.setdefault(module, set()).add(name)

    def typed(self, node: ast.expr, module: Module) -> str:
        """Return an annotation or a default as it is written here."""
        text = ast.unparse(node)
        text = re.sub(r"AsyncGenerator\[(.*), None\]", r"Generator[\1, None, None]", text)
        for name, plain in (PLAIN | SAME).items():
            text = re.sub(rf"\b{name}\b", plain, text)
        for part in ast.walk(ast.parse(text)):
            if isinstance(part, ast.Name):
                self.find(part.id, module)
        return text

    def find(self, name: str, module: Module) -> None:
        """Import a name from where that module has it."""
        if name in {face.name for face in FACES}:
            return
        if name == "PlainApprover":
            self.use("divingbell.portal", name)
        elif name in ("Generator", "Iterator"):
            self.use("collections.abc", name)
        elif name in module.imports:
            self.use(module.imports[name], name)
        elif any(name in _assigned(node) for node in module.tree.body):
            self.use(module.name, name)


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef) else []


def _members(face: Face) -> Iterator[tuple[str, ast.stmt, Module, str]]:
    """Yield the public members of a class with their docstrings, each after its overloads."""
    found: dict[str, tuple[Module, list[ast.stmt]]] = {}
    docs: dict[str, str] = {}
    for of in face.of:
        module_name, class_name = of.split(":")
        module = Module(module_name)
        body = module.class_of(class_name).body
        for place, node in enumerate(body):
            name = _name_of(node)
            if name is not None and (not name.startswith("_") or _is_made(name, face)):
                home, nodes = found.setdefault(name, (module, []))
                if home is module:
                    nodes.append(node)
                docs[name] = docs.get(name) or _doc_of(node, body[place + 1 : place + 2])
    for name, (home, nodes) in found.items():
        if (not face.only or name in face.only) and name not in face.without:
            yield from ((name, node, home, docs[name]) for node in nodes)


def _is_made(name: str, face: Face) -> bool:
    """Whether that is how users make one; all other faces are handed out."""
    return name == "__init__" and face.base == "Running"


def _name_of(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _doc_of(node: ast.stmt, after: list[ast.stmt]) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.get_docstring(node) or ""
    match after:
        case [ast.Expr(ast.Constant(str(text)))]:
            return text
    return ""


def _decorators(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [ast.unparse(each) for each in node.decorator_list]
    return []


class Method:
    """A function of a class, as it is written here."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, writer: Writer, home: Module):
        self.node, self.writer, self.home = node, writer, home
        given = node.args
        self.first = given.args[0].arg
        self.positional = given.args[1:]
        self.named = given.kwonlyargs
        self.more = given.kwarg

    def signature(self) -> str:
        given = self.node.args
        defaults = [None] * (len(self.positional) - len(given.defaults)) + list(given.defaults)
        parts = [self.first]
        parts += [self._parameter(*each) for each in zip(self.positional, defaults, strict=True)]
        if self.named:
            parts.append("*")
        parts += [
            self._parameter(*each) for each in zip(self.named, given.kw_defaults, strict=True)
        ]
        if self.more is not None:
            parts.append(f"**{self._parameter(self.more, None)}")
        return ", ".join(parts)

    def _parameter(self, argument: ast.arg, default: ast.expr | None) -> str:
        assert argument.annotation is not None
        text = f"{argument.arg}: {self.writer.typed(argument.annotation, self.home)}"
        return text if default is None else f"{text} = {self.writer.typed(default, self.home)}"

    def passed_on(self) -> str:
        parts = [_passed(argument.arg) for argument in self.positional]
        parts += [f"{argument.arg}={_passed(argument.arg)}" for argument in self.named]
        if self.more is not None:
            parts.append(f"**{self.more.arg}")
        return "".join(f", {part}" for part in parts)

    def returned(self) -> str:
        assert self.node.returns is not None
        return self.writer.typed(self.node.returns, self.home)


def _passed(name: str) -> str:
    return f"awaited({name})" if name in AWAITED else name


def _docstring(text: str, indent: str = " " * 8) -> list[str]:
    if not text:
        return []
    text = text.replace("`async with`", "`with`")
    lines = f'"""{text}\n"""'.splitlines() if "\n" in text else [f'"""{text}"""']
    return [f"{indent}{line}".rstrip() for line in lines]


def _write_member(writer: Writer, name: str, node: ast.stmt, home: Module, doc: str) -> None:
    out = writer.lines
    if isinstance(node, ast.AnnAssign):
        kind = writer.typed(node.annotation, home)
        out += ["    @property", f"    def {name}(self) -> {kind}:", *_docstring(doc)]
        out += [f"        found: {kind} = self._face(self._of.{name})", "        return found", ""]
        return
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    decorators = _decorators(node)
    method = Method(node, writer, home)
    if name == "__init__":
        out += [f"    def __init__({method.signature()}) -> None:", *_docstring(doc)]
        out += [f"        super().__init__(_Divingbell({method.passed_on()[2:]}))", ""]
        return
    kind = method.returned()
    if "overload" in decorators:
        writer.use("typing", "overload")
        out += ["    @overload", f"    def {name}({method.signature()}) -> {kind}: ...", ""]
    elif "property" in decorators:
        out += ["    @property", f"    def {name}(self) -> {kind}:", *_docstring(doc)]
        out += [f"        found: {kind} = self._face(self._of.{name})", "        return found", ""]
    elif "classmethod" in decorators:
        out += ["    @classmethod", f"    def {name}({method.signature()}) -> {kind}:"]
        out += [*_docstring(doc), "        made = cls.__new__(cls)"]
        out += [f"        Running.__init__(made, _Divingbell.{name}({method.passed_on()[2:]}))"]
        out += ["        return made", ""]
    elif "asynccontextmanager" in decorators:
        writer.use("contextlib", "contextmanager")
        out += ["    @contextmanager", f"    def {name}({method.signature()}) -> {kind}:"]
        out += [*_docstring(doc)]
        out += [f"        with self._entered(self._of.{name}({method.passed_on()[2:]})) as held:"]
        out += ["            yield held", ""]
    elif kind.startswith("Generator["):
        out += [f"    def {name}({method.signature()}) -> {kind}:", *_docstring(doc)]
        out += [f"        return self._portal.items(self._of.{name}({method.passed_on()[2:]}))", ""]
    else:
        call = f"self._call(self._of.{name}{method.passed_on()})"
        out += [f"    def {name}({method.signature()}) -> {kind}:", *_docstring(doc)]
        if name in DECORATORS:
            [given] = (argument.arg for argument in method.positional)
            options = ", ".join(f"{argument.arg}={argument.arg}" for argument in method.named)
            out += ["", "        def add(given: Function) -> Function:"]
            out += [f"            self._call(self._of.{name}({options}), given)"]
            out += ["            return given", ""]
            out += [f"        return add if {given} is None else add({given})", ""]
        elif kind == "None":
            out += [f"        {call}", ""]
        else:
            out += [f"        found: {kind} = {call}", "        return found", ""]


def make() -> str:
    """Return the text of the module, not formatted yet."""
    writer = Writer()
    for face in FACES:
        home, name = face.of[0].split(":")
        original = f"_{name}"
        writer.use(f"divingbell.{home}", f"{name} as {original}")
        writer.use("divingbell.portal", face.base)
        writer.lines += ["", "", f"class {face.name}({face.base}[{original}]):"]
        writer.lines += [f'    """{face.doc}"""', ""]
        for member in _members(face):
            _write_member(writer, *member)
    faces = ", ".join(f"_{face.of[0].split(':')[1]}: {face.name}" for face in FACES[:-1])
    writer.lines += ["", "", f"Face.faces.update({{{faces}}})"]
    if any("awaited(" in line for line in writer.lines):
        writer.use("divingbell.portal", "awaited")
    imports = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(writer.imports.items())
    ]
    return "\n".join([HEADER, *imports, *writer.lines, ""])


def formatted() -> str:
    """Return the text of the module as it is kept."""
    import subprocess

    text = make()
    for command in (["check", "--select", "I", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(formatted(), "utf-8")
