"""Keys of models, with real keyrings: one in a file, none at all, and one that is locked."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyrings.alt.file import PlaintextKeyring

from divingbell.agent.choosing import choose
from divingbell.agent.keys import SERVICE, find_key
from divingbell.errors import ConfigError
from divingbell.settings.agent import AgentSettings

NAME = "ANTHROPIC_API_KEY"
LOADED = """
import sys
from divingbell.agent.choosing import choose
from divingbell.settings.agent import AgentSettings
choose(AgentSettings(), {"OPENAI_API_KEY": "x"})
choose(AgentSettings(model="openai-chat:q", base_url="http://localhost"), {})
choose(AgentSettings(model="openai:gpt-5.5"), {"OPENAI_API_KEY": "x"})
print("keyring" in sys.modules)
"""


class Locked(KeyringBackend):
    """A keyring that nobody has unlocked."""

    priority = -1  # chosen by the test alone

    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("the collection is locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise keyring.errors.PasswordSetError(username)

    def delete_password(self, service: str, username: str) -> None:
        raise keyring.errors.PasswordDeleteError(username)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[PlaintextKeyring]:
    """A keyring in a file of its own."""
    before = keyring.get_keyring()
    made = PlaintextKeyring()
    made.file_path = str(tmp_path / "keyring.cfg")
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_the_environment_comes_first_and_then_the_keyring(kept: PlaintextKeyring) -> None:
    assert find_key(NAME, {}) is None
    kept.set_password(SERVICE, NAME, "kept")
    assert find_key(NAME, {}) == "kept"
    assert find_key(NAME, {NAME: "said"}) == "said"


def test_a_key_in_the_keyring_chooses_its_model(kept: PlaintextKeyring) -> None:
    kept.set_password(SERVICE, NAME, "kept")
    choice = choose(AgentSettings(), {})
    assert (choice.name.partition(":")[0], choice.key) == ("anthropic", "kept")
    assert "keyring" in choice.why
    assert choose(AgentSettings(), {"OPENAI_API_KEY": "x"}).name.startswith("openai:")


@pytest.mark.parametrize(
    ("model", "key"),
    [("anthropic:claude-sonnet-5", "kept"), ("openai-chat:gpt-5.5", "theirs"), ("ollama:q", None)],
)
def test_a_named_model_gets_the_key_of_its_own_provider(
    kept: PlaintextKeyring, model: str, key: str | None
) -> None:
    kept.set_password(SERVICE, NAME, "kept")
    kept.set_password(SERVICE, "OPENAI_API_KEY", "theirs")
    assert choose(AgentSettings(model=model), {}).key == key
    there = {NAME: "said", "OPENAI_API_KEY": "said"}
    assert choose(AgentSettings(model=model), there).key is None, "its provider finds it"


def test_an_address_of_ones_own_gets_the_key_that_is_named_or_none(kept: PlaintextKeyring) -> None:
    kept.set_password(SERVICE, "OPENAI_API_KEY", "theirs")
    kept.set_password(SERVICE, "OUR_KEY", "ours")
    settings = AgentSettings(model="openai-chat:q", base_url="http://localhost:1/v1")
    assert choose(settings, {}).key is None
    named = AgentSettings(model="openai-chat:q", base_url="http://h", key_variable="OUR_KEY")
    assert choose(named, {}).key == "ours"


def test_without_a_keyring_there_is_none_to_ask(kept: PlaintextKeyring) -> None:
    keyring.set_keyring(fail.Keyring())
    assert find_key(NAME, {}) is None
    with pytest.raises(ConfigError, match="keyring set divingbell"):
        choose(AgentSettings(), {})


def test_a_keyring_that_is_locked_is_told_with_what_to_do(kept: PlaintextKeyring) -> None:
    keyring.set_keyring(Locked())
    with pytest.raises(ConfigError, match=f"locked. Unlock it, or set {NAME}"):
        choose(AgentSettings(), {})


def test_it_is_not_loaded_where_nobody_needs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"
