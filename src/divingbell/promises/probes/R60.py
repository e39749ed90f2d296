# mypy: ignore-errors
import errno

from preamble import call, safe, take

if call("inotify_init1", 0)[1] == errno.EPERM:
    safe("refused")  # where nothing can share it out
else:
    take(lambda: call("inotify_init1", 0)[0] >= 0, MOST)  # noqa: F821  (from the host)
