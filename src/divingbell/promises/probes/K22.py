# mypy: ignore-errors
from preamble import refused

refused("quotactl", 0, 0, 0, 0)
refused("quotactl_fd", -1, 0, 0, 0)
