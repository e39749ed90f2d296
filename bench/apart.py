"""A home for what a benchmark leaves behind: tool lists, logs, pins and totals."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from divingbell.host import profile

KEPT = ("profiles", "images")


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """Keep this process and its children away from the user's own, profiles and images excepted."""
    theirs = profile.home()
    names = ("DIVINGBELL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="divingbell-bench-") as folder:
        own = Path(folder)
        (own / "home").mkdir()
        for name in KEPT:
            (theirs / name).mkdir(parents=True, exist_ok=True)
            (own / "home" / name).symlink_to(theirs / name)
        os.environ |= dict(zip(names, (f"{own}/home", f"{own}/data", f"{own}/config"), strict=True))
        try:
            yield own
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
