"""An agent made of its settings: the model connected to, the instructions written."""

from collections.abc import Iterable
from pathlib import Path

from divingbell.agent.agent import Agent
from divingbell.agent.choosing import NOT_INSTALLED, ModelChoice
from divingbell.agent.history import Entry
from divingbell.agent.limits import AgentLimits
from divingbell.agent.model import Model
from divingbell.agent.prompt import instructions
from divingbell.app import Divingbell
from divingbell.errors import ConfigError
from divingbell.gateway.context import Asker
from divingbell.host import requirements
from divingbell.session.base import SessionHandle
from divingbell.settings.agent import AgentSettings


def connect_model(choice: ModelChoice, settings: AgentSettings) -> Model:
    """Return the model that was chosen. Loading what is needed for it takes a second or two.

    Raises:
        ConfigError: there is no such provider, its key is missing, or the extra is not installed.
    """
    try:
        from divingbell.agent.providers import connect
    except ModuleNotFoundError:
        raise ConfigError(NOT_INSTALLED) from None
    return connect(
        choice.name,
        base_url=choice.base_url,
        key=choice.key,
        tools=settings.call_tools,
        images=settings.see_images,
        window=settings.window,
    )


def open_agent(
    bell: Divingbell,
    session: SessionHandle,
    model: Model,
    *,
    asker: Asker | None = None,
    history: Iterable[Entry] = (),
) -> Agent:
    """Return an agent for a session, as the settings of the Divingbell say.

    Raises:
        ConfigError: the prompt that they name can't be read.
    """
    settings = bell.settings.agent
    text = instructions(
        Path(settings.prompt) if settings.prompt else None,
        requirements.at_hand(bell.settings.packages),
        bell.gateway.fleet.packages(),
    )
    limits = AgentLimits(turns=settings.turns, tokens=settings.tokens, money=settings.money)

    async def hide(words: str) -> str:
        shown = await bell.border.outward(words, session.principal)
        note = bell.border.note(session.principal)
        return f"{shown}\n\n[{note}]" if note else shown

    return Agent(session, model, text, limits=limits, asker=asker, history=history, hide=hide)
