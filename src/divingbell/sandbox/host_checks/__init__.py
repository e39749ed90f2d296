"""Promises that can only be checked from outside: files, processes, what the host parses,
tools, and what lies around it on the machine.

Each function names the promises it checks, gets a bench, and returns what it saw; it raises Broken
if a promise is not kept.
"""

from divingbell.sandbox.host_checks import (
    admission,
    definitions,
    door,
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
from divingbell.sandbox.host_checks.bench import ALONE, CHECKS, Bench, Broken, Watch, judged
from divingbell.sandbox.host_checks.tool_bench import WITH_TOOLS, ToolBench

__all__ = [
    "ALONE",
    "CHECKS",
    "WITH_TOOLS",
    "Bench",
    "Broken",
    "ToolBench",
    "Watch",
    "admission",
    "definitions",
    "door",
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
