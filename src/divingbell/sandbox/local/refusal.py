"""The error for a machine that refuses a sandbox: what it said, the likely cause, what to do."""

from divingbell.errors import SandboxUnavailable
from divingbell.host import kernel


def check_walls() -> None:
    """Raise SandboxUnavailable where the kernel can't do it; takes up to a second: it tries."""
    if cause := kernel.why_not():
        raise SandboxUnavailable(
            f"the sandbox can't be sealed on this machine: {cause}. Run `divingbell doctor`."
        )


def refused(reason: str) -> SandboxUnavailable:
    """Return the error, with the cause where one can be found. Takes a moment: it tries things."""
    words = f"the sandbox can't be sealed on this machine: {reason}"
    if cause := kernel.why_not():
        words += f". The likely cause: {cause}"
    return SandboxUnavailable(f"{words}. Run `divingbell doctor`.")
