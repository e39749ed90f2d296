# mypy: ignore-errors
from preamble import refused

refused("fanotify_init", 0, 0)
refused("fanotify_mark", -1, 0, 0, -1, 0)
