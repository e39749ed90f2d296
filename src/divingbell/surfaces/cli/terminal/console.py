"""The console: prints with colours on a terminal, and plainly elsewhere."""

from typing import NoReturn

from rich.console import Console as _Console


class Console(_Console):
    """Rich's console, which leaves it to us what happens when nobody reads any more."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError  # rich would leave with a status of its own
