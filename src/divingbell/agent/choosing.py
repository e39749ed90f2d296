"""Which model is asked: the one that the settings name, else one whose key is there.

A key of the environment goes to its own provider alone. An address of one's own gets the key of the
variable that is named beside it, or none.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from divingbell.errors import ConfigError
from divingbell.settings.agent import AgentSettings

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
  divingbell chat --model ollama:qwen3 --base-url http://localhost:11434/v1
                               a model on this machine, with Ollama, vLLM or llama.cpp
  divingbell chat --demo       a recorded conversation, with real execution"""
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
        found = next((name for name in BY_KEY if environment.get(name)), None)
        if found is None:
            raise ConfigError(WAYS_TO_BEGIN)
        return ModelChoice(BY_KEY[found], why=f"because {found} is set")
    key = None
    if settings.key_variable:
        key = environment.get(settings.key_variable)
        if not key:
            raise ConfigError(f"{settings.key_variable}, which has the key, is not set")
    return ModelChoice(settings.model, settings.base_url or None, key)
