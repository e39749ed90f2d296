"""Divingbell: a sealed, fast, persistent Python sandbox for code that agents write, with tools."""

from divingbell.app import Divingbell
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
from divingbell.gateway.policy.approvals import Approval
from divingbell.models import (
    Event,
    Failure,
    FileInfo,
    Ledger,
    Limits,
    Output,
    Result,
    ToolCall,
    Usage,
    Variable,
)
from divingbell.session.session import Session
from divingbell.settings.config import Settings

__all__ = [
    "Approval",
    "CapacityError",
    "ConfigError",
    "Divingbell",
    "DivingbellError",
    "Event",
    "Failure",
    "FileInfo",
    "FileRefused",
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
    "Settings",
    "ToolCall",
    "ToolFailed",
    "Usage",
    "Variable",
]
