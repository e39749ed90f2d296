"""`divingbell doctor`: what this machine can do, what is in force, what to do about the rest."""

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from divingbell.app import Divingbell
from divingbell.errors import ConfigError, DivingbellError
from divingbell.escapes import one_line
from divingbell.sandbox import registry
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.surfaces.cli.terminal.printing import in_force, limits_in_force
from divingbell.text import uncovered

if TYPE_CHECKING:
    from divingbell.host.finding import Finding
    from divingbell.models import Isolation
    from divingbell.promises.check.self_check import Verdict
    from divingbell.surfaces.cli.terminal.console import Console

_SIGNS = {
    "ok": ("✓", "green"),
    "warn": ("!", "yellow"),
    "missing": ("✗", "red"),
    "unused": ("–", "dim"),
}


async def report(settings: Settings, *, check: bool, only: tuple[str, ...], as_json: bool) -> int:
    """Examine the machine, open a session and, if asked to, attack it; return the exit status.

    The report is complete even where the sandbox can't start: that is what it is for.

    Raises:
        ConfigError: `only` names a promise that there is not.
    """
    from divingbell.doctor import machine

    _check_names(only)
    # No server is started: whoever asks what the machine can do asks nothing of them. Nor is the
    # vault opened: the promises are about what code shows as it is, and some about a border.
    bell = Divingbell.of(replace(settings, servers=(), privacy="off"), progress=tell)
    paper = Paper(quiet=as_json)
    for finding in machine.examine(bell.settings):
        paper.finding(finding)
    if settings.backend == registry.RAY:
        for finding in await _of_cluster(settings):
            paper.finding(finding)
    try:
        async with bell:
            async with bell.session() as session:
                paper.in_force = asdict(session.isolation)
                paper.sentence("In force", in_force(session.isolation))
                paper.sentence("Limits", limits_in_force(session.limits))
                paper.not_promised(session.isolation)
            if check or only:
                from divingbell.promises.check import self_check

                async for verdict in self_check.check(bell, only or None):
                    paper.verdict(verdict)
    except DivingbellError as error:
        paper.failure = error
    paper.conclude(checked=check or bool(only))
    if as_json:
        print(json.dumps(paper.to_dict(), indent=2))
    return paper.status


class Paper:
    """Collects what was found, and prints it as it comes unless it is to be quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.in_force: dict[str, Any] | None = None
        self.failure: DivingbellError | None = None
        self._findings: list[Finding] = []
        self._verdicts: list[Verdict] = []
        self._left_out: list[dict[str, str]] = []
        self._console = None if quiet else _console()

    def finding(self, finding: "Finding") -> None:
        self._findings.append(finding)
        self._print(finding.state, finding.name, finding.detail)
        if finding.advice:
            self._say(f"    {finding.advice}")

    def sentence(self, name: str, detail: str) -> None:
        self._print("ok", name, detail)

    def not_promised(self, isolation: "Isolation") -> None:
        """Say what these walls are not for; the rest is what they promise."""
        from divingbell.promises.check.self_check import left_out

        walls, limits_by = isolation.backend, isolation.limits_by
        for promise, reason in left_out(walls, limits_by, own_uid=isolation.own_uid):
            self._left_out.append({"id": promise.id, "attack": promise.attack, "reason": reason})
            self._print("warn", "Not promised", f"{promise.id}, {promise.attack}: {reason}")

    def verdict(self, verdict: "Verdict") -> None:
        self._verdicts.append(verdict)
        promise = verdict.promise
        self._print(
            "ok" if verdict.kept else "missing", promise.id, f"{promise.group}: {promise.attack}"
        )
        if not verdict.kept:
            # What was seen comes out of a session that was under attack.
            self._say(f"    expected: {promise.expected}\n    seen: {one_line(verdict.detail)}")

    def conclude(self, *, checked: bool) -> None:
        if self.failure is not None:
            self._print("missing", "No sandbox", str(self.failure))
        elif checked:
            self._say(f"\n{self._kept} kept, {self._broken} broken")

    @property
    def _kept(self) -> int:
        return sum(verdict.kept for verdict in self._verdicts)

    @property
    def _broken(self) -> int:
        return len(self._verdicts) - self._kept

    @property
    def status(self) -> int:
        if self._broken:
            return exit_status.FAILED
        return exit_status.OK if self.failure is None else exit_status.of_error(self.failure)

    def to_dict(self) -> dict[str, Any]:
        promises = [
            {
                "id": verdict.promise.id,
                "group": verdict.promise.group,
                "attack": verdict.promise.attack,
                "expected": verdict.promise.expected,
                "kept": verdict.kept,
                "detail": verdict.detail,
            }
            for verdict in self._verdicts
        ]
        return {
            "findings": [asdict(finding) for finding in self._findings],
            "in_force": self.in_force,
            "not_promised": self._left_out,
            "failure": None if self.failure is None else str(self.failure),
            "promises": promises,
            "kept": self._kept,
            "broken": self._broken,
        }

    def _print(self, state: str, name: str, detail: str) -> None:
        if self._console is not None:
            from rich.text import Text

            sign, style = _SIGNS[state]
            self._console.print(
                Text.assemble((sign, style), " ", (name, "bold"), "  ", uncovered(detail)),
                soft_wrap=True,
            )

    def _say(self, text: str) -> None:
        if self._console is not None:
            self._console.print(text, soft_wrap=True, markup=False, highlight=False)


async def _of_cluster(settings: Settings) -> "list[Finding]":
    """Look at the cluster that the sessions are on."""
    from divingbell.host.finding import Finding

    try:
        from divingbell.scale.ray import cluster_of

        cluster = cluster_of(settings)
    except ConfigError as error:  # it is not installed, for instance
        return [Finding("Ray", "missing", str(error))]
    from divingbell.scale import ray_doctor

    return await ray_doctor.findings(cluster)


def _check_names(only: tuple[str, ...]) -> None:
    from divingbell.promises import PROMISES

    unknown = set(only) - {promise.id for promise in PROMISES}
    if unknown:
        raise ConfigError(f"there is no promise {', '.join(sorted(unknown))}: see SECURITY.md")
    elsewhere = [each.id for each in PROMISES if each.id in only and not each.about_sessions]
    if elsewhere:
        words = "about a page in a browser: the tests try it, and nothing here can"
        raise ConfigError(f"{', '.join(elsewhere)} is {words}")


def _console() -> "Console":
    from divingbell.surfaces.cli.terminal.console import Console

    return Console()
