"""Libraries of data that a program may have beside Divingbell, for tests that pass their values."""

import importlib
import os
from typing import Any

import pytest


def need(name: str) -> Any:
    """Return a library, or skip the test where it is missing; in CI that is a failure."""
    try:
        return importlib.import_module(name)
    except ImportError:
        reason = f"{name} is not installed; `./dev bench` installs it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=True)
