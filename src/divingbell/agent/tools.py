"""What a model can call: a table of tools, each of which says how it goes and then answers."""

import json
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from divingbell.agent.events import AgentEvent
from divingbell.agent.history import Answered, Call
from divingbell.agent.model import ModelTool


class AgentTool(Protocol):
    """One tool of the agent."""

    @property
    def definition(self) -> ModelTool:
        """What the model reads of it."""

    def run(self, call: Call, arguments: dict[str, Any]) -> AsyncGenerator[AgentEvent | Answered]:
        """Yield what happens, and at the end the answer to the call."""


class BadArguments(Exception):
    """Raised for arguments that can't be used; the text is for the model."""


def arguments_of(call: Call) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        BadArguments: they are not complete, or no object.
    """
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError:
        raise BadArguments("the arguments are not valid JSON, so nothing was run") from None
    if not isinstance(found, dict):
        raise BadArguments("the arguments are no object, so nothing was run")
    return found
