"""An agent made of its settings: the model connected to, the instructions written."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from divingbell.agent.agent import Agent
from divingbell.agent.asking import OneByOne
from divingbell.agent.choosing import NOT_INSTALLED, ModelChoice
from divingbell.agent.delegation import Delegation
from divingbell.agent.direct_tools import DirectCalls, Offer, offered
from divingbell.agent.history import Entry
from divingbell.agent.limits import AgentLimits
from divingbell.agent.mode_choice import ModeChoice
from divingbell.agent.model import Model, ModelUsage
from divingbell.agent.modes import Circumstances, can_go_on, decide, signatures
from divingbell.agent.prompt import instructions
from divingbell.agent.tools import AgentTool
from divingbell.app import Divingbell
from divingbell.errors import ConfigError
from divingbell.gateway.context import Asker
from divingbell.host import requirements
from divingbell.journal.events import AnswerEnded
from divingbell.session.base import SessionHandle
from divingbell.settings.agent import AgentMode, AgentSettings
from divingbell.settings.servers import dataset_folders
from divingbell.shares import weight

IMPORT = "import_dataset"
"""The tool of a server that has datasets."""


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


async def open_agent(
    bell: Divingbell,
    session: SessionHandle,
    model: Model,
    *,
    asker: Asker | None = None,
    history: Iterable[Entry] = (),
    mode: AgentMode | ModeChoice | None = None,
) -> Agent:
    """Return an agent for a session, as the settings of the Divingbell say.

    `mode` takes the place of that in the settings and of an experiment. One that was chosen before
    stays, as long as anything can be done in it, and the person is not told of it again.

    Raises:
        ConfigError: the prompt that they name can't be read, or the model can't do what the mode
            needs.
    """
    asker = None if asker is None else OneByOne(asker)
    offer = await offered(bell.gateway, session)
    choice = await _mode(bell, session, model, offer, mode)
    settings = bell.settings.agent
    limits = AgentLimits(turns=settings.turns, tokens=settings.tokens, money=settings.money)
    delegates = choice.has_code and settings.delegate_depth > 0
    text = instructions(
        Path(settings.prompt) if settings.prompt else None,
        requirements.at_hand(bell.settings.packages),
        bell.gateway.fleet.packages(),
        await signatures(offer) if choice.mode == "code" else "",
        choice.mode,
        delegates,
        model.calls_tools,
    )
    tools: list[AgentTool] = []
    if choice.has_tools:
        calls = DirectCalls(
            bell.gateway,
            bell.border,
            bell.journal,
            session,
            asker=asker,
            has_code=choice.has_code,
        )
        tools += await weight.in_thread(lambda: calls.tools(offer))

    async def hide(words: str) -> str:
        shown = await bell.border.outward(words, session.principal)
        note = bell.border.note(session.principal)
        return f"{shown}\n\n[{note}]" if note else shown

    agent = Agent(
        session,
        model,
        text,
        limits=limits,
        tools=tools,
        code=choice.has_code,
        asker=asker,
        history=history,
        mode=choice,
        on_end=lambda *ended: _record(bell, agent, *ended),
        hide=hide,
        folders=dataset_folders(bell.settings.servers),
    )
    agent.tells_mode = agent.tells_mode and choice is not mode
    read = {tool.full_name for tool in offer.tools.values()} if choice.has_tools else set()
    bell.ledgers.open_agent(
        session.key,
        None if agent.history else agent.told,
        lambda tool: tool.full_name not in read,
    )
    if delegates:
        Delegation(bell, agent, settings.delegate_depth)
    return agent


async def _mode(
    bell: Divingbell,
    session: SessionHandle,
    model: Model,
    offer: Offer,
    given: AgentMode | ModeChoice | None,
) -> ModeChoice:
    """Return the mode: the one that is given, else that of an experiment, else the settings'."""
    found = Circumstances(offer, model.window, model.calls_tools, await _has_data(session, offer))
    if isinstance(given, ModeChoice):
        if can_go_on(given, found):
            return given
        given = "auto"
    # Who has no name is another one in each conversation.
    user = session.principal.user or session.id
    arm = None if given else bell.settings.experiment.arm_of(user)
    if arm is not None and not model.calls_tools:
        arm = None
    choice = await decide(given or arm or bell.settings.agent.mode, found)
    if arm is None:
        return choice
    why = f"an experiment has you in the arm {arm!r}"
    return replace(choice, why=f"{why}; {choice.why}" if choice.why else why, arm=arm)


async def _has_data(session: SessionHandle, offer: Offer) -> bool:
    if any(tool.name == IMPORT for tool in offer.for_code):
        return True
    return any(not file.path.startswith(".") for file in await session.files.list())


def _record(bell: Divingbell, agent: Agent, reason: str, usage: ModelUsage, turns: int) -> None:
    """Tell the journal of an answer."""
    assert agent.mode is not None
    bell.journal.note(
        AnswerEnded(
            agent.session.principal,
            agent.session.key,
            agent.model.name,
            agent.mode.mode,
            agent.mode.arm,
            reason,
            turns,
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cost,
            usage.cache_written_tokens,
            usage.counted_tokens,
        )
    )
