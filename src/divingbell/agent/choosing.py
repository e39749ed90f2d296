"""Which model is asked: the one that the settings name, else one whose key is there.

A key goes to its own provider alone. An address of one's own gets the key of the variable that is
named beside it, or none.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from divingbell.agent.keys import SERVICE, find_key
from divingbell.errors import ConfigError
from divingbell.settings.agent import AgentSettings
from divingbell.text import one_line

BY_KEY = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5",
    "OPENAI_API_KEY": "openai:gpt-5.5",
    "GOOGLE_API_KEY": "google:gemini-3.7-flash",
    "GEMINI_API_KEY": "google:gemini-3.7-flash",
}
"""The model that is asked where nobody has said which, by the key that is there."""
WAYS_TO_BEGIN = """\
No model is set up yet. Any of these is a beginning:
  export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, GOOGLE_API_KEY)
  keyring set divingbell ANTHROPIC_API_KEY
                               keeps it in the keyring: pip install 'divingbell[keyring]'
  divingbell chat --model ollama:qwen3 --base-url http://localhost:11434/v1
                               a model on this machine, with Ollama, vLLM or llama.cpp
  divingbell chat --demo       a recorded conversation, with real execution"""
NO_KEY = """\
{model} needs a key, and there is none. Any of these helps:
  export {name}=…
  keyring set divingbell {name}
                               keeps it in the keyring: pip install 'divingbell[keyring]'
  --base-url URL               for a server of your own that speaks the same language"""
OWN_ADDRESS = "OPENAI_BASE_URL"
"""Where OpenAI's library is told of another server, which may ask for no key."""
NOT_INSTALLED = (
    "models need the extra `agent`: install it with  pip install 'divingbell[agent]'  "
    "(or try `divingbell chat --demo`, which needs none)"
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and how it is reached."""

    name: str
    base_url: str | None = None
    key: str | None = None
    why: str = ""
    """Why this one, for the person."""


def choose(settings: AgentSettings, environment: Mapping[str, str] = os.environ) -> ModelChoice:
    """Return the model to ask.

    Raises:
        ConfigError: none is named and no key is there, or the key that is named is not.
    """
    if not settings.model:
        if settings.base_url:
            raise ConfigError("base_url needs a model: name it, as in openai-chat:qwen3")
        return _by_key(environment)
    if settings.key_variable:
        key = find_key(settings.key_variable, environment)
        if not key:
            raise ConfigError(
                f"{settings.key_variable}, which has the key, is not set (nor is it in the keyring "
                f"under {SERVICE!r})"
            )
    else:
        key = None if settings.base_url else _key_of(settings.model, environment)
    return ModelChoice(settings.model, settings.base_url or None, key)


def _by_key(environment: Mapping[str, str]) -> ModelChoice:
    for name, model in BY_KEY.items():
        if environment.get(name):
            return ModelChoice(model, why=f"because {name} is set")
    for name, model in BY_KEY.items():
        if key := find_key(name, {}):
            return ModelChoice(model, key=key, why=f"because {name} is in the keyring")
    raise ConfigError(WAYS_TO_BEGIN)


def _key_of(model: str, environment: Mapping[str, str]) -> str | None:
    """Return the key of a model's provider that the keyring has, if the environment has none: what
    is there the provider finds itself.

    Raises:
        ConfigError: neither has one.
    """
    provider = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
    names = [name for name, known in BY_KEY.items() if known.partition(":")[0] == provider]
    if not names or any(environment.get(name) for name in (*names, OWN_ADDRESS)):
        return None
    if key := next(filter(None, (find_key(name, {}) for name in names)), None):
        return key
    raise ConfigError(NO_KEY.format(model=one_line(model, 80), name=names[0]))
