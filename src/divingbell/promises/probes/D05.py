# mypy: ignore-errors
import ast
import importlib
import os
import re

from preamble import judge, safe, unsafe

FOLDER = "/servers/hostile"
names = [name for name in os.listdir(FOLDER) if name not in ("README.md", "__init__.py")]
judge([name for name in names if not re.fullmatch(r"[A-Za-z]\w{0,63}\.py", name)], "file names:")
judge(len(names) != COUNT, f"{len(names)} files")  # noqa: F821  (given by the host)
ALLOWED = (ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
for name in ("__init__.py", *names):
    path = os.path.join(FOLDER, name)
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    start, *rest = tree.body
    is_docstring = isinstance(start, ast.Expr) and isinstance(start.value, ast.Constant)
    strange = [] if is_docstring else [start]
    if name != "__init__.py":
        strange += [node for node in rest if not isinstance(node, ALLOWED)]
        sources = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        strange += sources - {"typing", "divingbell_inside.tools", "typing_extensions"}
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        strange += [call for call in calls if getattr(call, "id", "") != "call"]
    if strange:
        unsafe(f"{name}: {strange}")
for name in names:
    module = name.removesuffix(".py")
    function = getattr(importlib.import_module(f"servers.hostile.{module}"), module)
    if not callable(function):
        unsafe(f"{name} has no function")
safe(f"{len(names)} files can be imported and hold nothing but their function")
