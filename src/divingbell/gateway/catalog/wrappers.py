"""The files of /servers: one module of Python for each tool, made from its schemas.

They are what a model reads before it calls a tool, so they are plain, typed and short. They are
made from text that nobody here has checked, so a wrapper is always the same few things: a
docstring, imports, TypedDicts, and one function that returns `call(name, arguments)`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from divingbell.amounts import amount
from divingbell.gateway.catalog.naming import WRAPPER_NAMES, is_safe, unique
from divingbell.gateway.schema.annotation import Annotations, literal, quoted
from divingbell.gateway.schema.check import check
from divingbell.gateway.schema.members import members_of
from divingbell.gateway.schema.reference import Schema
from divingbell.text import one_line, visible
from divingbell.tool import Tool

MAX_DESCRIPTION = 8_000
MAX_PARAMETER = 1_000
MAX_INSTRUCTIONS = 4_000
MAX_SENTENCE = 200
MAX_PARAMETERS = 200
MAX_MODULE = 64_000
MAX_SIGNATURE = 2_000
MAX_README = 16_000
WIDTH = 100

OTHERS = "others"
"""Takes further arguments where a schema welcomes names that it does not list."""
ARGUMENTS = "arguments"
"""Takes all arguments where a schema lists none, or too many."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    """Its name in Python."""
    key: str
    """Its name at the server."""
    annotation: str
    default: str | None
    """Source; None where the parameter is required."""
    schema: Schema

    def __str__(self) -> str:
        ending = "" if self.default is None else f" = {self.default}"
        return f"{self.name}: {self.annotation}{ending}"


@dataclass(frozen=True, slots=True)
class _Form:
    """The parameters and the result of a wrapper."""

    parameters: list[_Parameter]
    rest: str | None
    """The name of `**rest`, if the tool takes any name."""
    result: str

    def entries(self) -> list[str]:
        """Return the source of each parameter: the required ones, then the rest by name only."""
        found = [str(each) for each in self.parameters if each.default is None]
        optional = [str(each) for each in self.parameters if each.default is not None]
        if optional:
            found += ["*", *optional]
        if self.rest is not None:
            found.append(f"**{self.rest}: Any")
        return found


def module_source(tool: Tool) -> str:
    """Return the content of /servers/<package>/<function>.py. It always compiles.

    A tool whose schemas make more than MAX_MODULE characters gets a function that takes any
    arguments; they are checked against the schema all the same, on the host.

    Raises:
        ValueError: the tool's function is no name that can stand in source.
    """
    _safe_name(tool.function)
    annotations = Annotations(taken={tool.function})
    source = _module(tool, _form(tool, annotations), annotations.classes)
    if len(source) > MAX_MODULE:
        note = "Its schema is too large for a signature: see get_mcp_tool_details."
        source = _module(tool, _Form([], ARGUMENTS, "Any"), [], note)
    return source


def signature(tool: Tool) -> str:
    """Return one line that shows how a tool is called, or several where one is too long."""
    form = _form(tool, Annotations(classes=False))
    source = _definition(tool.function, form, "")
    if len(source) > MAX_SIGNATURE:
        short = [
            each.name if each.default is None else f"{each.name}=…" for each in form.parameters
        ]
        source = f"{tool.function}({', '.join(short)})"
    return source if len(source) <= MAX_SIGNATURE else f"{tool.function}(…)"


def package_source(
    server: str, package: str, tools: Sequence[Tool], instructions: str | None
) -> str:
    """Return the content of /servers/<package>/__init__.py.

    Raises:
        ValueError: a tool's function is no name that can stand in source.
    """
    _safe_name(package)
    about = f"{amount(len(tools), 'tool')} of {one_line(server, 80)} for everyone."
    if instructions and instructions.strip():
        about += f" Its own words:\n\n{visible(instructions.strip(), MAX_INSTRUCTIONS)}"
    names = "".join(f"{quoted(_safe_name(tool.function))}, " for tool in tools)
    return (
        f"{docstring(about)}\n\n"
        "from divingbell_inside.tools import serve_package\n\n"
        f"serve_package(__name__, {quoted(server)}, ({names.rstrip()}))\n"
    )


def readme(server: str, package: str, tools: Sequence[Tool], instructions: str | None) -> str:
    """Return the content of /servers/<package>/README.md: what there is, in a line each."""
    how = ""
    if tools:
        first = tools[0].function
        how = (
            f" `from servers.{package} import {first}`; "
            f"`!cat /servers/{package}/{first}.py` shows how it is called."
        )
    text = (
        f"# {one_line(server, 80)}\n\n{amount(len(tools), 'tool')} for everyone.{how}\n"
        "Tools that are for you and not for everyone have no file: search_tools finds them.\n"
        f"Resources and prompts: `servers.{package}.resources()`, `servers.{package}.prompts()`; "
        "read_resource(uri) and get_prompt(name, **arguments) beside them.\n\n"
    )
    if instructions and instructions.strip():
        quote = visible(instructions.strip(), MAX_INSTRUCTIONS // 2).replace("\n", "\n> ")
        text += f"What the server says about itself:\n\n> {quote}\n\n"
    for number, tool in enumerate(tools):
        sentence = first_sentence(tool.description)
        line = f"- {tool.function}: {sentence}\n" if sentence else f"- {tool.function}\n"
        if len(text) + len(line) > MAX_README:
            text += (
                f"\n… and {len(tools) - number} more: `!ls /servers/{package}`, "
                f"`list_mcp_tools({quoted(server)})`.\n"
            )
            break
        text += line
    return text


def awaited_readme(server: str, package: str) -> str:
    """Return the content of README.md of a server that has not listed its tools yet."""
    return (
        f"# {one_line(server, 80)}\n\n"
        f"Its tools are not known yet. `import servers.{package}` waits for them, and says what is "
        "wrong if there is something.\n"
    )


def index_readme(servers: Iterable[tuple[str, str, int | None]]) -> str:
    """Return the content of /servers/README.md, given each server, its package, how many tools;
    None for one that has not listed them yet."""
    lines = [
        f"- {package}: "
        + ("its tools are not known yet" if number is None else amount(number, "tool"))
        + (f" (of {one_line(server, 80)})" * (server != package))
        for server, package, number in servers
    ]
    body = "\n".join(lines) or "No servers are configured."
    return (
        "# Servers\n\n"
        "A folder for each server, a module for each tool: `from servers.SERVER import TOOL`.\n"
        'Find one with `search_tools("what you want to do")`, or look: `!ls /servers`, '
        "`dir(servers)`.\n\n"
        f"{body}\n"
    )


def first_sentence(description: str) -> str:
    """Return the first sentence of a description in one line, cut where it goes on and on."""
    head = one_line(description.strip().split("\n\n", 1)[0], 4 * MAX_SENTENCE)
    sentence = re.split(r"(?<=[.!?])\s", head, maxsplit=1)[0]
    return sentence if len(sentence) <= MAX_SENTENCE else sentence[: MAX_SENTENCE - 1] + "…"


def docstring(text: str, indent: str = "") -> str:
    """Return source of a docstring that nothing in `text` (made visible before) can end."""
    safe = text.strip().replace("\\", "\\\\")
    safe = re.sub(r'"{3,}|"$', lambda match: '\\"' * len(match[0]), safe)
    first, *rest = safe.split("\n")
    if rest:
        rest = [f"{indent}{line.rstrip()}".rstrip() for line in rest] + [indent]
    return '"""' + "\n".join([first.rstrip(), *rest]) + '"""'


def _module(tool: Tool, form: _Form, classes: list[str], note: str = "") -> str:
    body = "\n\n".join(classes)
    definition = _definition(tool.function, form, "def ")
    used = set(re.findall(r"\w+", f"{body}\n{definition}"))
    words = [word for word in ("Any", "Literal", "NotRequired", "TypedDict") if word in used]
    inside = "UNSET, call" if "UNSET" in used else "call"
    typing = f"from typing import {', '.join(words)}\n\n" if words else ""
    arguments = [f"{quoted(each.key)}: {each.name}" for each in form.parameters]
    if form.rest is not None:
        arguments.append(f"**{form.rest}")
    full_name = quoted(tool.full_name)
    returned = f"    return call({full_name}, {{{', '.join(arguments)}}})\n"
    if len(returned) > WIDTH:
        lines = "".join(f"            {entry},\n" for entry in arguments)
        returned = (
            f"    return call(\n        {full_name},\n        {{\n{lines}        }},\n    )\n"
        )
    description = visible(tool.description.strip(), MAX_DESCRIPTION) or f"{tool.function}."
    pieces = [description, note, _documented(form)]
    explained = docstring("\n\n".join(filter(None, pieces)), "    ")
    summary = docstring(first_sentence(tool.description) or f"{tool.function}.")
    return (
        f"{summary}\n\n{typing}"
        f"from divingbell_inside.tools import {inside}\n\n\n"
        + "".join(f"{each}\n\n" for each in classes)
        + f"{definition}:\n    {explained}\n{returned}"
    )


def _form(tool: Tool, annotations: Annotations) -> _Form:
    root = tool.input_schema
    members = members_of(root)
    outcome = tool.result_schema
    parameters: list[_Parameter] = []
    rest: str | None = ARGUMENTS
    if members is not None and len(members.properties) + len(members.required) <= MAX_PARAMETERS:
        # Required ones in the order in which `required` names them, then the others.
        keys = list(members.required | dict.fromkeys(members.properties))
        names = unique(keys, reserved=WRAPPER_NAMES)
        for key in keys:
            schema = members.properties.get(key)
            annotation = annotations.of(schema, root, key)
            default = None if key in members.required else _default(schema, root)
            parameters.append(_Parameter(names[key], key, annotation, default, schema))
        rest = OTHERS if members.closed is False else None
        while rest in names.values():
            rest = f"{rest}_"
    elif members is None and root is not None and root.get("additionalProperties") is False:
        rest = None
    result = "Any" if outcome is None else annotations.of(outcome, outcome, "Result")
    return _Form(parameters, rest, result)


def _default(schema: Schema, root: Schema) -> str:
    """Return source of a parameter's default value.

    Lists and dicts are left to the server, and so is a default that its own schema refuses (null
    for a string is common): the argument is then not sent.
    """
    if not isinstance(schema, Mapping) or "default" not in schema:
        return "UNSET"
    value = schema["default"]
    source = literal(value)
    if source is None or check(value, {"allOf": [schema], **_definitions(root)}, budget=500):
        return "UNSET"
    return source


def _definitions(root: Schema) -> dict[str, Any]:
    kept = ("$defs", "definitions")
    return {key: root[key] for key in kept if isinstance(root, Mapping) and key in root}


def _definition(name: str, form: _Form, prefix: str) -> str:
    entries = form.entries()
    line = f"{prefix}{name}({', '.join(entries)}) -> {form.result}"
    if len(line) < WIDTH or not entries:
        return line
    lines = "".join(f"    {entry},\n" for entry in entries)
    return f"{prefix}{name}(\n{lines}) -> {form.result}"


def _documented(form: _Form) -> str:
    lines = []
    for each in form.parameters:
        words = []
        if each.name != each.key:
            words.append(f"(sent as {one_line(quoted(each.key), 100)})")
        if isinstance(each.schema, Mapping):
            description = each.schema.get("description")
            if isinstance(description, str) and description.strip():
                words.append(visible(description.strip(), MAX_PARAMETER))
            words += _notes(each.schema, each.default)
        if words:
            text = " ".join(words).replace("\n", f"\n{8 * ' '}")
            lines.append(f"    {each.name}: {text}")
    return "Args:\n" + "\n".join(lines) if lines else ""


def _notes(schema: Mapping[str, Any], default: str | None) -> list[str]:
    """Return what an annotation can't say, in few words."""
    notes = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if (low := literal(least)) and least is not None:
        notes.append(f"at least {low}")
    if (high := literal(most)) and most is not None:
        notes.append(f"at most {high}")
    if isinstance(kind := schema.get("format"), str):
        notes.append(f"format {one_line(kind, 40)}")
    if default == "UNSET" and schema.get("default") is not None:
        notes.append(f"the server's default is {one_line(repr(schema['default'])[:400], 100)}")
    return [f"({', '.join(notes)})"] if notes else []


def _safe_name(name: str) -> str:
    if not is_safe(name):
        raise ValueError(f"{name[:80]!r} is no name for source code: pass it through naming.unique")
    return name
