# mypy: ignore-errors
import os

from preamble import denied

denied(lambda: os.nice(-1), "nice")
denied(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), "setpriority")
