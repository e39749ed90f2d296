"""Checks of promises from outside the sandbox: of files, processes and tools, of all that the
host parses, and of all that lies around it on the machine.

Each function names the promises it checks, gets a rig, and returns what it saw; it raises
PromiseBroken if a promise is not kept.
"""

from divingbell.promises.check import (
    admission,
    calls,
    commands,
    definitions,
    exits,
    files,
    flows,
    folders,
    hiding,
    keeping,
    lines,
    packages,
    parsing,
    processes,
    quotas,
    rates,
    recording,
    restoring,
    secrecy,
    serving,
    sessions,
    settings,
    sign_ins,
    skills,
)
from divingbell.promises.check.privacy_rig import PRIVACY_CHECKS, PrivacyRig
from divingbell.promises.check.rig import ALONE, CHECKS, CheckRig, PromiseBroken, Watch, judged
from divingbell.promises.check.tool_rig import TOOL_CHECKS, ToolRig

__all__ = [
    "ALONE",
    "CHECKS",
    "PRIVACY_CHECKS",
    "TOOL_CHECKS",
    "CheckRig",
    "PrivacyRig",
    "PromiseBroken",
    "ToolRig",
    "Watch",
    "admission",
    "calls",
    "commands",
    "definitions",
    "exits",
    "files",
    "flows",
    "folders",
    "hiding",
    "judged",
    "keeping",
    "lines",
    "packages",
    "parsing",
    "processes",
    "quotas",
    "rates",
    "recording",
    "restoring",
    "secrecy",
    "serving",
    "sessions",
    "settings",
    "sign_ins",
    "skills",
]
