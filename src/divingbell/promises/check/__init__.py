"""Promises that can only be checked from outside: files, processes, what the host parses,
tools, and what lies around it on the machine.

Each function names the promises it checks, gets a rig, and returns what it saw; it raises
PromiseBroken if a promise is not kept.
"""

from divingbell.promises.check import (
    admission,
    calls,
    definitions,
    exits,
    files,
    folders,
    packages,
    parsing,
    processes,
    quotas,
    secrecy,
    serving,
    sessions,
    settings,
    sign_ins,
)
from divingbell.promises.check.rig import ALONE, CHECKS, CheckRig, PromiseBroken, Watch, judged
from divingbell.promises.check.tool_rig import WITH_TOOLS, ToolRig

__all__ = [
    "ALONE",
    "CHECKS",
    "WITH_TOOLS",
    "CheckRig",
    "PromiseBroken",
    "ToolRig",
    "Watch",
    "admission",
    "calls",
    "definitions",
    "exits",
    "files",
    "folders",
    "judged",
    "packages",
    "parsing",
    "processes",
    "quotas",
    "secrecy",
    "serving",
    "sessions",
    "settings",
    "sign_ins",
]
