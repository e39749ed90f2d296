# mypy: ignore-errors
import builtins

from preamble import judge


def names():
    known = [name for name in (*dir(builtins), "search_tools", "servers") if name[0] != "_"]
    return {name: globals().get(name, getattr(builtins, name, None)) for name in known}


before = names()
exec("from servers.hostile import *", globals())
after = names()
judge([name for name in before if after[name] is not before[name]], "names that are others now:")
judge("echo" not in globals(), "tools that are not there:")
