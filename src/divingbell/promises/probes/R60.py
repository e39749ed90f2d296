# mypy: ignore-errors
from preamble import call, take

take(lambda: call("inotify_init1", 0)[0] >= 0, MOST)  # noqa: F821  (from the host)
