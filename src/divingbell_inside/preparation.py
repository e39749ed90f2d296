"""What is done once in the process that interpreters are forked from."""

import gc
import importlib
from collections.abc import Iterable

from divingbell_inside import runner


def load(names: Iterable[str]) -> dict[str, str]:
    """Import these modules and make a warm runner; return what is missing, and why."""
    missing = {}
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing[name] = str(error)
    runner.prepare()
    runner.warm_up()
    return missing


def freeze() -> None:
    """Move all that lives to where the collector never looks: its pages stay shared."""
    gc.collect()
    gc.disable()
    gc.freeze()
