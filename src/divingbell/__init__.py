"""Divingbell: a sealed, fast, persistent Python sandbox for code that agents write, with tools.

A name is loaded when it is first used: all of it takes 300 ms, and a program may want only a part.
"""

import importlib
import sys

TYPE_CHECKING = False
"""What type checkers take as true. That of `typing` has its price: loading it takes 10 ms."""

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    raise ImportError(
        "Divingbell needs Python 3.11, 3.12 or 3.13, and this is "
        f"{sys.version_info[0]}.{sys.version_info[1]}: make the environment with one of those "
        "(uv venv --python 3.13)"
    )

if TYPE_CHECKING:
    from typing import Any

    from divingbell import sync
    from divingbell.app import (
        Divingbell,
    )
    from divingbell.border.border import (
        Border,
    )
    from divingbell.command import (
        CommandEvent,
        CommandOptions,
        CommandResult,
    )
    from divingbell.errors import (
        CapacityError,
        ConfigError,
        DiskFull,
        DivingbellError,
        FileMissing,
        FileRefused,
        FileTooLarge,
        InvalidInput,
        NotRecorded,
        ProfileError,
        RateExceeded,
        SandboxUnavailable,
        SessionClosed,
        SkillMissing,
        SkillRefused,
        ToolFailed,
        UnknownToken,
        WrongLoop,
    )
    from divingbell.gateway.context import (
        Asker,
    )
    from divingbell.gateway.functions.function import (
        HostFunction,
    )
    from divingbell.gateway.functions.tool_context import (
        ToolContext,
    )
    from divingbell.gateway.gateway import (
        Gateway,
    )
    from divingbell.gateway.policy.approvals import (
        Answer,
        Approval,
        Approver,
    )
    from divingbell.gateway.upstream.fleet import (
        ServerState,
    )
    from divingbell.journal.journal import (
        Journal,
    )
    from divingbell.models import (
        Completion,
        Consumption,
        DataFormat,
        Event,
        EventType,
        Failure,
        FileInfo,
        FileKind,
        FrameLibrary,
        Isolation,
        Ledger,
        LimitName,
        Limits,
        Output,
        OutputName,
        Result,
        SessionLimits,
        State,
        Status,
        ToolCall,
        ToolUse,
        Usage,
        ValueKind,
        Variable,
    )
    from divingbell.principal import (
        Principal,
    )
    from divingbell.review.finding import (
        Finding,
        Review,
    )
    from divingbell.session.base import (
        CommandHandle,
    )
    from divingbell.session.files import (
        Files,
        OpenFile,
    )
    from divingbell.session.session import (
        Session,
    )
    from divingbell.session.source import (
        Source,
    )
    from divingbell.settings.arguments import (
        SettingsArguments,
    )
    from divingbell.settings.config import (
        Settings,
    )
    from divingbell.settings.policy import (
        Policy,
    )
    from divingbell.skills.skill import (
        Skill,
    )
    from divingbell.skills.skills import (
        Skills,
    )
    from divingbell.tool import (
        Tool,
    )

__all__ = [
    "Answer",
    "Approval",
    "Approver",
    "Asker",
    "Border",
    "CapacityError",
    "CommandEvent",
    "CommandHandle",
    "CommandOptions",
    "CommandResult",
    "Completion",
    "ConfigError",
    "Consumption",
    "DataFormat",
    "DiskFull",
    "Divingbell",
    "DivingbellError",
    "Event",
    "EventType",
    "Failure",
    "FileInfo",
    "FileKind",
    "FileMissing",
    "FileRefused",
    "FileTooLarge",
    "Files",
    "Finding",
    "FrameLibrary",
    "Gateway",
    "HostFunction",
    "InvalidInput",
    "Isolation",
    "Journal",
    "Ledger",
    "LimitName",
    "Limits",
    "NotRecorded",
    "OpenFile",
    "Output",
    "OutputName",
    "Policy",
    "Principal",
    "ProfileError",
    "RateExceeded",
    "Result",
    "Review",
    "SandboxUnavailable",
    "ServerState",
    "Session",
    "SessionClosed",
    "SessionLimits",
    "Settings",
    "SettingsArguments",
    "Skill",
    "SkillMissing",
    "SkillRefused",
    "Skills",
    "Source",
    "State",
    "Status",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolUse",
    "UnknownToken",
    "Usage",
    "ValueKind",
    "Variable",
    "WrongLoop",
    "sync",
]

_HOMES = {
    "Answer": "divingbell.gateway.policy.approvals",
    "Approval": "divingbell.gateway.policy.approvals",
    "Approver": "divingbell.gateway.policy.approvals",
    "Asker": "divingbell.gateway.context",
    "Border": "divingbell.border.border",
    "CapacityError": "divingbell.errors",
    "CommandEvent": "divingbell.command",
    "CommandHandle": "divingbell.session.base",
    "CommandOptions": "divingbell.command",
    "CommandResult": "divingbell.command",
    "Completion": "divingbell.models",
    "Consumption": "divingbell.models",
    "ConfigError": "divingbell.errors",
    "DataFormat": "divingbell.models",
    "DiskFull": "divingbell.errors",
    "Divingbell": "divingbell.app",
    "DivingbellError": "divingbell.errors",
    "Event": "divingbell.models",
    "EventType": "divingbell.models",
    "Failure": "divingbell.models",
    "FileInfo": "divingbell.models",
    "FileKind": "divingbell.models",
    "FileMissing": "divingbell.errors",
    "FileRefused": "divingbell.errors",
    "FileTooLarge": "divingbell.errors",
    "Files": "divingbell.session.files",
    "Finding": "divingbell.review.finding",
    "FrameLibrary": "divingbell.models",
    "Gateway": "divingbell.gateway.gateway",
    "HostFunction": "divingbell.gateway.functions.function",
    "InvalidInput": "divingbell.errors",
    "Isolation": "divingbell.models",
    "Journal": "divingbell.journal.journal",
    "Ledger": "divingbell.models",
    "LimitName": "divingbell.models",
    "Limits": "divingbell.models",
    "NotRecorded": "divingbell.errors",
    "OpenFile": "divingbell.session.files",
    "Output": "divingbell.models",
    "OutputName": "divingbell.models",
    "Policy": "divingbell.settings.policy",
    "Principal": "divingbell.principal",
    "ProfileError": "divingbell.errors",
    "RateExceeded": "divingbell.errors",
    "Result": "divingbell.models",
    "Review": "divingbell.review.finding",
    "SandboxUnavailable": "divingbell.errors",
    "ServerState": "divingbell.gateway.upstream.fleet",
    "Session": "divingbell.session.session",
    "SessionClosed": "divingbell.errors",
    "SessionLimits": "divingbell.models",
    "Settings": "divingbell.settings.config",
    "SettingsArguments": "divingbell.settings.arguments",
    "Skill": "divingbell.skills.skill",
    "SkillMissing": "divingbell.errors",
    "SkillRefused": "divingbell.errors",
    "Skills": "divingbell.skills.skills",
    "Source": "divingbell.session.source",
    "State": "divingbell.models",
    "Status": "divingbell.models",
    "Tool": "divingbell.tool",
    "ToolCall": "divingbell.models",
    "ToolContext": "divingbell.gateway.functions.tool_context",
    "ToolFailed": "divingbell.errors",
    "UnknownToken": "divingbell.errors",
    "ToolUse": "divingbell.models",
    "Usage": "divingbell.models",
    "ValueKind": "divingbell.models",
    "Variable": "divingbell.models",
    "WrongLoop": "divingbell.errors",
}
"""The module of each name; the same as above."""


def __getattr__(name: str) -> "Any":
    if name == "sync":
        return importlib.import_module("divingbell.sync")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
