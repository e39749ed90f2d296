"""Detectors of others, and makers of texts: programs in the environment of the peers.

To start one takes seconds, so that each is started once and asked line by line.
"""

import atexit
import functools
import json
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from environments import ROOT, environment
from turns import Unable

LOCK = ROOT / "requirements" / "privacy-peers.txt"
TIMEOUT = 600.0


def asked(subject: str, texts: Sequence[str], install: bool) -> tuple[Any, float]:
    """What a peer finds, and its seconds.

    Raises:
        Unable: it is not installed, or fails.
    """
    found, seconds = _program("detectors.py", subject, install).answer(list(texts))
    return found, seconds


@functools.cache
def texts_made(times: int, name: str, install: bool) -> Any:
    """A set of held_out.py.

    Raises:
        Unable: Faker is not installed, or it fails.
    """
    return _program("held_out.py", "", install).answer([times, name])


class _Program:
    """One program that reads a question a line, and writes an answer a line."""

    def __init__(self, command: Sequence[str]) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        atexit.register(self._process.kill)

    def answer(self, question: object) -> Any:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(TIMEOUT, process.kill)
        alarm.start()
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        if not line:
            process.wait()
            self._said.seek(0)
            said = self._said.read().strip() or f"no answer in {TIMEOUT:g} s"
            raise Unable(said.splitlines()[-1])
        return json.loads(line)


@functools.cache
def _program(script: str, argument: str, install: bool) -> _Program:
    python = environment(LOCK, install, "./dev bench privacy")
    return _Program([python, str(Path(__file__).with_name(script)), argument])
