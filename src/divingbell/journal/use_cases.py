"""What a cell used tools for, by written rules: from its calls, and from its ledger.

The rules are tried in this order, and the first that fits counts:

- *computing*: it called no tool.
- *polling*: it called one tool three times or more with the same arguments.
- *workflow*: it called two different tools or more.
- *filtering*: the model read at most half of what its calls brought.
- *calling*: it called a tool, and nothing of the above fits.
"""

from collections import Counter
from typing import Literal, get_args

from divingbell.models import Result

UseCase = Literal["computing", "polling", "workflow", "filtering", "calling"]
USE_CASES: tuple[UseCase, ...] = get_args(UseCase)
ALIKE = 3
"""Calls with the same arguments that are taken to wait for something. Of long arguments only the
start is compared."""
LEFT = 0.5
"""The part of what calls brought that a model reads at most, where code has filtered it."""


def use_of(result: Result) -> UseCase:
    """Return what a cell used tools for."""
    calls = result.calls
    if not calls:
        return "computing"
    if len(calls) >= ALIKE:
        alike = Counter((call.name, call.arguments) for call in calls)
        if max(alike.values()) >= ALIKE:
            return "polling"
    if len({call.name for call in calls}) > 1:
        return "workflow"
    ledger = result.ledger
    if ledger is not None and ledger.output_tokens <= LEFT * ledger.direct_call_tokens:
        return "filtering"
    return "calling"
