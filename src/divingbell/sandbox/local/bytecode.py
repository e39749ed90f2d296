"""The bytecode of what runs inside. The zygote sees its files read-only, so the host writes it.

Without it every zygote compiles some twenty modules first, which takes 22 ms. pip writes it when
it installs; uv and a checkout do not.
"""

import sys
from importlib.util import cache_from_source
from pathlib import Path


def provide(package: Path) -> None:
    """Compile the modules of a package if one of them has no bytecode, or older.

    Nothing is done where Python was told to write none. Where this user may not write, the
    package stays as it is.
    """
    if sys.dont_write_bytecode or not any(map(_is_stale, package.glob("*.py"))):
        return
    from compileall import compile_dir

    # By force: it looks at whole seconds only, and Python at the length of the file as well.
    compile_dir(package, quiet=2, maxlevels=0, force=True)


def _is_stale(source: Path) -> bool:
    try:
        return Path(cache_from_source(str(source))).stat().st_mtime < source.stat().st_mtime
    except FileNotFoundError:
        return True
