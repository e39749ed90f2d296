"""The modes of `serve`: which tools clients are offered, for all users or by an experiment.

The `[experiment]` table is that of the agent. Its arm `auto` is for agents alone: users in it have
the mode of the settings here.
"""

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

ServeMode = Literal["code", "hybrid", "direct"]
"""Code is run; tools that are chosen are passed through besides; or all are, and no code is run."""
_BY_NAME: dict[str, ServeMode] = {mode: mode for mode in get_args(ServeMode)}


def mode_of(settings: "Settings", user: str) -> ServeMode:
    """Return the mode that a user has."""
    return _BY_NAME.get(settings.experiment.arm_of(user) or "", settings.mode)


def serve_modes(settings: "Settings") -> set[ServeMode]:
    """Return all modes that some user may have."""
    named = {*settings.experiment.arms, *settings.experiment.users}
    return {settings.mode, *(_BY_NAME[name] for name in named if name in _BY_NAME)}
