"""The command: runs what the command line says, and returns its exit status."""

import contextlib
import os
import sys
from collections.abc import Sequence

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.surfaces.cli import exit_status

log = logs.logger("divingbell")

HELP = ("--help", "-h")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as listed in `exit_status`."""
    _mend_streams()
    logs.screen_by(_blotted)
    try:
        status = _called(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status if isinstance(status, int) else exit_status.OK
    except DivingbellError as error:
        log.debug("the traceback:", exc_info=error)
        return _fail(str(error), exit_status.of_error(error))
    except KeyboardInterrupt:
        return exit_status.INTERRUPTED
    except BrokenPipeError:
        # What is still in the buffers has nowhere to go.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return exit_status.BROKEN_PIPE
    except OSError as error:  # a full disk, most likely: files of the user's are read elsewhere
        log.debug("the traceback:", exc_info=error)
        return _fail(f"the output can't be written: {error.strerror}", exit_status.FAILED)


def _called(arguments: Sequence[str]) -> object:
    if not arguments or (len(arguments) == 1 and arguments[0] in HELP):
        from divingbell.surfaces.cli.command_table import overview

        print(overview())
        return exit_status.OK
    from divingbell.surfaces.cli.app import call

    return call(arguments)


def _mend_streams() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Closed by the caller (`2>&-`). The next file that is opened would take its place,
            # and what is meant for people would be written to the line of a sandbox.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A file name that is not valid text, or a narrow locale, is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    # A line is one write: in a pipe that several write to, another's could stand within it else.
    sys.stderr.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]


def _fail(message: str, status: int) -> int:
    from divingbell.text import uncovered

    with contextlib.suppress(OSError):
        print(f"divingbell: {uncovered(message)}", file=sys.stderr, flush=True)
    return status


def _blotted(words: str) -> str:
    """Take personal data out of what is logged. What finds it is loaded with the first line."""
    from divingbell.border.privacy.blotter import BLOTTER

    return BLOTTER.blotted(words)
