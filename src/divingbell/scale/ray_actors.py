"""What actors of Ray and those who call them have in common: names, versions, errors."""

import platform
from collections.abc import Awaitable, Mapping
from importlib.metadata import version
from typing import TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from divingbell import errors
from divingbell.errors import ConfigError, DivingbellError, SandboxUnavailable

NAMESPACE = "divingbell"
DIRECTORY = "directory"
RESOURCE = "divingbell"
"""What a Ray node offers whose machine shall run sessions."""
CALLS_AT_ONCE = 10_000
ON_THE_HEAD = {"node:__internal_head__": 0.001}

T = TypeVar("T")


def node_actor_name(ray_id: str) -> str:
    """Return the name of the actor that owns the node of a Ray node."""
    return f"node-{ray_id}"


def versions() -> dict[str, str]:
    """Return the versions that have to be the same on all machines."""
    return {
        "Python": platform.python_version(),
        "Ray": ray.__version__,
        "Divingbell": version("divingbell"),
    }


def check_versions(theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    for name, found in ours.items():
        if theirs.get(name) != found:
            raise ConfigError(
                f"the cluster has {name} {theirs.get(name)}, and this machine {found}: install the "
                "same version on all machines (`divingbell doctor` names them)"
            )


async def answer(reference: "Awaitable[T]") -> T:
    """Return the answer of an actor; an error of ours is raised as it was there."""
    try:
        return await reference
    except RayTaskError as error:
        if isinstance(error.cause, DivingbellError):
            raise error.cause from None
        raise
    except RayError as error:
        raise SandboxUnavailable(f"the Ray cluster does not answer: {why(error)}") from None


def plain(error: DivingbellError) -> DivingbellError:
    """Return an error that an actor can raise for a caller elsewhere: of the kind that errors.py
    has for it, with its message. Kinds below those may be made of more, and come as none."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    found: DivingbellError = kind(str(error))
    return found


def why(error: BaseException) -> str:
    """Return the first words of an error, or those of ours that is behind it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, DivingbellError):
        return str(cause)
    return (str(error).strip() or type(error).__name__).splitlines()[0]
