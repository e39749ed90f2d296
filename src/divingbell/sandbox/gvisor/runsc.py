"""The program runsc: what it can do on this machine, and a way to run it."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.contained.command import EXPENDABLE

ASK_TIMEOUT = 20.0
RUN_TIMEOUT = 120.0
INSTALL = "sudo apt-get install runsc (or see https://gvisor.dev/docs/user_guide/install/)"


class NoRunsc(SandboxUnavailable):
    """gVisor can't be used here; `advice` is the command that changes that."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(f"{detail}: {advice}")
        self.detail = detail
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Runsc:
    """A runsc with the options that every command of ours has."""

    program: str
    version: str
    platform: str
    options: tuple[str, ...]

    def run(
        self,
        state: Path,
        command: Sequence[str | Path],
        *,
        entrances: Sequence[int] = (),
        timeout: float = RUN_TIMEOUT,
    ) -> None:
        """Run one command; `entrances` lead into the control groups that it is to be in. Blocks.

        Raises:
            SandboxUnavailable: it failed; the message is its own.
        """

        def enter() -> None:
            for entrance in entrances:
                os.write(entrance, b"0")
            # The bundle says so too, but a restore does not look at it.
            Path("/proc/self/oom_score_adj").write_text(str(EXPENDABLE))

        arguments = [self.program, f"--root={state}", *self.options, *command]
        log = state / f"runsc-{os.urandom(6).hex()}.log"
        # A file, not a pipe: what it starts would hold the pipe open.
        with log.open("w+b") as output:
            log.unlink()
            try:
                done = subprocess.run(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                    timeout=timeout,
                    preexec_fn=enter if entrances else None,
                    start_new_session=True,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxUnavailable(f"runsc {command[0]}: {error}") from None
            if done.returncode:
                output.seek(0)
                words = output.read().decode("utf-8", "replace").strip().split("\n")[-1][-400:]
                raise SandboxUnavailable(f"runsc {command[0]}: {words}")


def find(platform: str = "auto") -> Runsc:
    """Return the runsc of this machine. Blocks.

    Raises:
        NoRunsc: there is none, or it can't be used.
    """
    program = shutil.which("runsc")
    if program is None:
        raise NoRunsc("there is no runsc on the PATH", INSTALL)
    version = re.search(r"version (\S+)", _ask(program, "--version"))
    flags = _ask(program, "flags")
    if platform == "auto":
        # The successor of ptrace since 2023, and several times as fast.
        platform = "systrap" if "systrap" in flags else "ptrace"
    if platform not in flags:
        raise NoRunsc(f"this runsc has no platform {platform}", 'set platform = "auto"')
    if platform == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise NoRunsc("the platform kvm needs /dev/kvm", 'set platform = "auto"')
    if os.geteuid() != 0:
        raise NoRunsc(
            "runsc needs root to set up its sandboxes",
            'run Divingbell as root, or use Docker: backend = "docker-runsc"',
        )
    sockets = "--host-uds=open" if "-host-uds" in flags.split() else "--fsgofer-host-uds"
    if sockets.split("=")[0].lstrip("-") not in flags:
        raise NoRunsc("this runsc can't reach a socket of the host", INSTALL)
    options = (f"--platform={platform}", "--network=none", "--ignore-cgroups", sockets)
    return Runsc(program, version[1] if version else "unknown", platform, options)


def _ask(program: str, question: str) -> str:
    try:
        done = subprocess.run(
            [program, question], capture_output=True, text=True, timeout=ASK_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoRunsc(f"{program} does not run ({error})", INSTALL) from None
    return done.stdout + done.stderr
