"""Keys of models: from the environment, else from the keyring of the desktop.

The keyring is an extra. It is loaded where the environment has no key, and not before: that takes a
tenth of a second and more, and some keyrings ask the person to unlock them.
"""

from collections.abc import Mapping

from divingbell.errors import ConfigError

SERVICE = "divingbell"
"""The service that keys are stored under: `keyring set divingbell ANTHROPIC_API_KEY`."""


def find_key(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the key of that name; None where neither has one.

    Raises:
        ConfigError: the keyring can't be read, because it is locked for instance.
    """
    return environment.get(name) or _in_keyring(name)


def _in_keyring(name: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except ModuleNotFoundError:
        return None
    try:
        return keyring.get_password(SERVICE, name) or None
    except NoKeyringError:  # a machine without a desktop
        return None
    except KeyringError as error:
        raise ConfigError(
            f"the keyring can't be read: {error or type(error).__name__}. Unlock it, or set {name}"
        ) from error
