"""What the examples here share: a model, and a conversation on the screen.

Without EXAMPLE_MODEL a script stands for the model, and all else is real: the loop, the sandbox,
the servers. EXAMPLE_MODEL=anthropic:claude-sonnet-5 asks that one instead, in other words.
"""

import os
import textwrap
from collections.abc import Iterable

from divingbell.agent.agent import Agent
from divingbell.agent.choosing import ModelChoice
from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    CellStarted,
    Done,
    HelperEnded,
    ToolEnded,
    ToolStarted,
)
from divingbell.agent.model import Model
from divingbell.agent.opening import connect_model
from divingbell.agent.scripted import Line, ScriptedModel
from divingbell.settings.agent import AgentSettings


def model_of(script: Iterable[Line]) -> Model:
    """Return the model that was asked for, else one that says the lines of a script."""
    name = os.environ.get("EXAMPLE_MODEL")
    if name:
        return connect_model(ModelChoice(name), AgentSettings())
    return ScriptedModel(script)


async def show(agent: Agent, question: str) -> Done:
    """Ask, print what happens, and return the end of it."""
    print(f"> {question}")
    async for event in agent.ask(question):
        _print(event)
        if isinstance(event, Done):
            print(event.text)
            return event
    raise AssertionError("the last event is Done")


def _print(event: AgentEvent) -> None:
    if isinstance(event, CellStarted):
        print(textwrap.indent(event.code.strip(), "  | ", lambda line: True))
    elif isinstance(event, CellEvent) and event.event.type in ("stdout", "stderr"):
        print(textwrap.indent(event.event.text, "  "), end="")
    elif isinstance(event, CellEnded) and event.result.error is not None:
        print(textwrap.indent(str(event.result.error), "  "))
    elif isinstance(event, ToolStarted):
        print(f"  {event.name}({event.arguments})")
    elif isinstance(event, ToolEnded):
        print(textwrap.indent(event.text, "  "))
    elif isinstance(event, HelperEnded):
        print(f"  [helper {event.helper}: {event.outcome} after {event.turns} turns]")
