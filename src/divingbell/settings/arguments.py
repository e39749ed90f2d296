"""The settings as arguments of a program, for type checkers: `Divingbell(memory="1GB")`.

`Settings` is what is made of them. A test compares the two, name by name and type by type.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from divingbell.models import Limits, SessionLimits
from divingbell.settings.audit import AuditMode
from divingbell.settings.metrics import MetricsMode
from divingbell.settings.policy import Policy
from divingbell.settings.privacy import Privacy
from divingbell.settings.serve_modes import ServeMode
from divingbell.settings.skills import SkillsMode
from divingbell.settings.traces import TracesMode

Texts = list[str] | tuple[str, ...]


class SettingsArguments(SessionLimits, total=False):
    """The settings that `Divingbell` takes by name besides `backend`, and the limits of sessions.

    All may be left out. `Settings` says what each of them means.
    """

    backend_order: Texts
    backend_minimum: str
    node_backend: str
    ray_address: str
    ray_insecure: bool
    node_port: int
    platform: Literal["auto", "systrap", "ptrace", "kvm"]
    limits: Limits | SessionLimits
    packages: Texts
    preload: Texts
    mounts: Mapping[str, str | Path]
    workspace: str | Path
    max_sessions: int
    open_timeout: float
    idle_timeout: float
    pool: int
    pool_most: int
    copy_after: float
    interrupt_grace: float
    cgroups: Literal["auto", "require", "off"]
    uid_base: int
    uid_count: int
    mcp_config: str | Path
    mode: ServeMode
    search: Literal["auto", "words", "meaning"]
    search_model: str | Path
    servers: Mapping[str, Any]
    policy: Policy | Mapping[str, Any]
    privacy: Privacy | None
    privacy_rules: Mapping[str, Any]
    vault: Mapping[str, Any]
    agent: Mapping[str, Any]
    experiment: Mapping[str, Any]
    service: Mapping[str, Any]
    audit: AuditMode | None
    audit_log: Mapping[str, Any]
    review: Mapping[str, Any]
    metrics: MetricsMode | None
    traces: TracesMode
    token_price: float
    skills: SkillsMode | None
