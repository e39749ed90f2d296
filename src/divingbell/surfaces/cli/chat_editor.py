"""`divingbell chat --acp`: the agent of an editor, with the options of a chat."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from divingbell.agent.choosing import NOT_INSTALLED, choose
from divingbell.agent.keeping import Conversations
from divingbell.agent.opening import connect_model
from divingbell.errors import ConfigError
from divingbell.surfaces.cli.chat_options import ChatOptions, Paths

if TYPE_CHECKING:
    from divingbell.agent.model import Model
    from divingbell.settings.config import Settings


async def serve(paths: Paths, options: ChatOptions, settings: "Settings") -> int:
    """Speak with an editor until it has gone; return the exit status.

    Raises:
        ConfigError: there is no model to be had, or no editor.
    """
    try:
        from divingbell.surfaces.cli import editor
    except ModuleNotFoundError:
        raise ConfigError(NOT_INSTALLED) from None
    choice = choose(settings.agent)

    async def make_model() -> "Model":
        return await asyncio.to_thread(connect_model, choice, settings.agent)

    kept = None if options.no_save else Conversations.of(settings)
    given = replace(paths, files=(*paths.files, *options.put))
    return await editor.serve(settings, make_model, kept, given)
