"""Divingbell: a sealed, fast, persistent Python sandbox for code that agents write, with tools.

A name is loaded when it is first used: all of it takes 300 ms, and a program may want only a part.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from divingbell import sync
    from divingbell.app import (
        Divingbell,
    )
    from divingbell.errors import (
        CapacityError,
        ConfigError,
        DivingbellError,
        FileRefused,
        InvalidInput,
        NotRecorded,
        ProfileError,
        SandboxUnavailable,
        SessionClosed,
        ToolFailed,
    )
    from divingbell.gateway.policy.approvals import (
        Approval,
    )
    from divingbell.models import (
        DataFormat,
        Event,
        Failure,
        FileInfo,
        FrameLibrary,
        Ledger,
        Limits,
        Output,
        Result,
        SessionLimits,
        ToolCall,
        Usage,
        Variable,
    )
    from divingbell.session.session import (
        Session,
    )
    from divingbell.settings.config import (
        Settings,
    )

__all__ = [
    "Approval",
    "CapacityError",
    "ConfigError",
    "DataFormat",
    "Divingbell",
    "DivingbellError",
    "Event",
    "Failure",
    "FileInfo",
    "FileRefused",
    "FrameLibrary",
    "InvalidInput",
    "Ledger",
    "Limits",
    "NotRecorded",
    "Output",
    "ProfileError",
    "Result",
    "SandboxUnavailable",
    "Session",
    "SessionClosed",
    "SessionLimits",
    "Settings",
    "ToolCall",
    "ToolFailed",
    "Usage",
    "Variable",
    "sync",
]

_HOMES = {
    "Approval": "divingbell.gateway.policy.approvals",
    "CapacityError": "divingbell.errors",
    "ConfigError": "divingbell.errors",
    "DataFormat": "divingbell.models",
    "Divingbell": "divingbell.app",
    "DivingbellError": "divingbell.errors",
    "Event": "divingbell.models",
    "Failure": "divingbell.models",
    "FileInfo": "divingbell.models",
    "FileRefused": "divingbell.errors",
    "FrameLibrary": "divingbell.models",
    "InvalidInput": "divingbell.errors",
    "Ledger": "divingbell.models",
    "Limits": "divingbell.models",
    "NotRecorded": "divingbell.errors",
    "Output": "divingbell.models",
    "ProfileError": "divingbell.errors",
    "Result": "divingbell.models",
    "SandboxUnavailable": "divingbell.errors",
    "Session": "divingbell.session.session",
    "SessionClosed": "divingbell.errors",
    "SessionLimits": "divingbell.models",
    "Settings": "divingbell.settings.config",
    "ToolCall": "divingbell.models",
    "ToolFailed": "divingbell.errors",
    "Usage": "divingbell.models",
    "Variable": "divingbell.models",
}
"""The module of each name; the same as above."""


def __getattr__(name: str) -> Any:
    if name == "sync":
        return importlib.import_module("divingbell.sync")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
