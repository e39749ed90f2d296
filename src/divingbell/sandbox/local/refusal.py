"""The error for a machine that refuses a sandbox: what it said, the likely cause, what to do."""

from divingbell.errors import SandboxUnavailable
from divingbell.host import kernel


def refused(reason: str) -> SandboxUnavailable:
    """Return the error, with the cause where one can be found. Takes a moment: it tries things."""
    words = f"the sandbox can't be sealed on this machine: {reason}"
    if cause := kernel.why_not():
        words += f". The likely cause: {cause}"
    return SandboxUnavailable(f"{words}. Run `divingbell doctor`.")
