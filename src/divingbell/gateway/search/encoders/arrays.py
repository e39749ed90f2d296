"""The import of numpy, for one thread."""

import os
from typing import Any


def numpy() -> Any:
    """Import numpy so that it computes in one thread.

    Measured: on a busy machine its own threads wait for each other at four times the work.
    Ours, each with a batch, don't.
    """
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = before or "1"
    try:
        import numpy
    finally:
        if before is None:
            del os.environ[name]
    return numpy
