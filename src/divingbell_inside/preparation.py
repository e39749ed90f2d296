"""The preparation of the process that interpreters are forked from, done once."""

import gc
import importlib
from collections.abc import Iterable

from divingbell_inside import runner


def load(names: Iterable[str], *, warm: bool) -> dict[str, str]:
    """Import these modules and make a runner; return what is missing, and why.

    Warming it up takes up to a second, which is for those that many sessions come from.
    """
    missing = {}
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing[name] = str(error)
    runner.prepare()
    if warm:
        runner.warm_up()
    return missing


def freeze(*, tidy: bool = True) -> None:
    """Move all that lives to where the collector never looks: its pages stay shared.

    What is dead is thrown away first, `tidy`, which is for those that many sessions come from.
    """
    if tidy:
        gc.collect()
    gc.disable()
    gc.freeze()
