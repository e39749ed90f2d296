# mypy: ignore-errors
import os

from preamble import denied


def lower(value: bytes) -> int:
    descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        return os.write(descriptor, value)
    finally:
        os.close(descriptor)


for value in (b"-1", b"-500", b"-1000"):
    denied(lambda value=value: lower(value), f"oom_score_adj {value.decode()}")
