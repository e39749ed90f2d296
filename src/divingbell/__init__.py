"""Divingbell: a sealed, fast, persistent Python sandbox for code that agents write."""

from divingbell.app import Divingbell
from divingbell.config import Settings
from divingbell.errors import (
    CapacityError,
    ConfigError,
    DivingbellError,
    FileRefused,
    InvalidInput,
    ProfileError,
    SandboxUnavailable,
    SessionClosed,
)
from divingbell.models import (
    Event,
    Failure,
    FileInfo,
    Limits,
    Output,
    Result,
    Usage,
    Variable,
)
from divingbell.session import Session

__all__ = [
    "CapacityError",
    "ConfigError",
    "Divingbell",
    "DivingbellError",
    "Event",
    "Failure",
    "FileInfo",
    "FileRefused",
    "InvalidInput",
    "Limits",
    "Output",
    "ProfileError",
    "Result",
    "SandboxUnavailable",
    "Session",
    "SessionClosed",
    "Settings",
    "Usage",
    "Variable",
]
