# mypy: ignore-errors
from preamble import call, take

MONOTONIC = 1
take(lambda: call("timer_create", MONOTONIC, None, bytes(8))[0] == 0, MOST)  # noqa: F821  (from the host)
