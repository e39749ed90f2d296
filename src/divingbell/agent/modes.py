"""The mode of an agent: whether it uses tools from code, directly, or both.

It is decided once a conversation: another mode is another prompt and other definitions, and what
providers had cached of the conversation would be lost.
"""

import json
from dataclasses import dataclass

from divingbell.agent.context import DEFAULT_BUDGET
from divingbell.agent.direct_tools import Offer
from divingbell.agent.mode_choice import Mode, ModeChoice
from divingbell.errors import ConfigError
from divingbell.gateway.catalog import wrappers
from divingbell.journal import tokens
from divingbell.settings.agent import AgentMode
from divingbell.shares import weight

DIRECT_SHARE, HYBRID_SHARE = 0.02, 0.05
"""Shares of the model's window: definitions of tools up to the first are read by the model, up to
the second beside the tool for code; larger ones are left to searches in code."""
SIGNATURES = 1_000
"""Tokens. Up to so many the signatures of all tools stand in the prompt, and save the search."""
NOTHING = "there are no tools to call directly, and in this mode the model writes no code"
SHORTEST = 3
"""Tokens of a signature, at least: where there are too many, none has to be made."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What `auto` decides by."""

    offer: Offer
    window: int | None
    """Tokens that the model can read at once, where that is known."""
    calls_tools: bool = True
    """Whether the model can."""
    has_data: bool = False
    """Whether there are datasets or files to work with."""


async def decide(asked: AgentMode, found: Circumstances) -> ModeChoice:
    """Return the mode that was asked for; for "auto" the one that fits.

    Raises:
        ConfigError: the model can't call tools, and the mode needs that.
    """
    if asked != "auto":
        if asked != "code" and not found.calls_tools:
            raise ConfigError(
                f'mode = "{asked}" needs a model that calls tools, and this one does not: '
                'write mode = "code"'
            )
        return ModeChoice(asked, NOTHING if asked == "direct" and not found.offer.tools else "")
    if not found.calls_tools:
        return ModeChoice("code", "the model calls no tools: its code is read from its answers")
    if found.has_data:
        return ModeChoice("code", "there is data to compute with")
    if not found.offer.tools:
        return ModeChoice("code", "there are no tools to call directly")
    return _by_share(await definition_tokens(found.offer), found)


def _by_share(size: int, found: Circumstances) -> ModeChoice:
    share = size / (found.window or DEFAULT_BUDGET)
    mode: Mode = "code"
    if share <= DIRECT_SHARE:
        mode = "direct"
    elif share <= HYBRID_SHARE:
        mode = "hybrid"
    window = f"{found.window or DEFAULT_BUDGET:,}" + ("" if found.window else ", as is assumed")
    count = len(found.offer.tools)
    return ModeChoice(
        mode,
        f"the definitions of {count:,} {'tool' if count == 1 else 'tools'} take {size:,} tokens, "
        f"{share:.1%} of the model's window ({window}): up to {DIRECT_SHARE:.0%} they are called "
        f"directly, up to {HYBRID_SHARE:.0%} from code as well, beyond that from code only",
    )


def can_go_on(choice: ModeChoice, found: Circumstances) -> bool:
    """Whether a conversation can go on in its mode: else the model could do nothing at all."""
    if choice.has_tools and not found.calls_tools:
        return False
    return choice.has_code or bool(found.offer.tools)


async def definition_tokens(offer: Offer) -> int:
    """Return the tokens that a model reads where all tools are given to it."""
    if not offer.tools:
        return 0
    text = await weight.in_thread(lambda: _definitions(offer))
    return (await tokens.count_later(text)).tokens


def _definitions(offer: Offer) -> str:
    return json.dumps(
        [
            {"name": name, "description": tool.description, "parameters": tool.input_schema}
            for name, tool in offer.tools.items()
        ]
    )


async def signatures(offer: Offer) -> str:
    """Return how all tools are called from code; nothing where that is too long, or not known."""
    if not offer.is_whole or len(offer.for_code) * SHORTEST > SIGNATURES:
        return ""
    by_package: dict[str, list[str]] = {}
    for tool in offer.for_code:
        by_package.setdefault(tool.package, []).append(wrappers.signature(tool))
    text = "\n".join(
        line
        for package, lines in sorted(by_package.items())
        for line in (f"# from servers.{package} import …", *lines)
    )
    fits = len(text) <= SIGNATURES * 10 and (await tokens.count_later(text)).tokens <= SIGNATURES
    return text if fits else ""
