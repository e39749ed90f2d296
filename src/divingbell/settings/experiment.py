"""The settings of an experiment: the share of users that each mode has.

The same table is a split for a comparison and a rollout by and by. A user is at a fixed point of a
line by the hash of the name, and `code` has the line's beginning: where its share grows, the others
come to it and nobody leaves it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from divingbell.errors import ConfigError
from divingbell.settings.agent import MODES, AgentMode
from divingbell.settings.markers import Described, ReadBy

ORDER: tuple[AgentMode, ...] = ("code", "hybrid", "auto", "direct")
"""The order of the arms on the line."""
WHOLE = 100
_POINTS = 1 << 64


def _shares(value: Any, place: Any) -> Mapping[AgentMode, float]:
    _check_arms(value, place, "arms")
    for name, share in value.items():
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 <= share <= WHOLE:
            raise ConfigError(place.told(f"arms: {name} must be a number from 0 to {WHOLE}"))
    if value and abs(sum(value.values()) - WHOLE) > 1e-9:
        total = sum(value.values())
        raise ConfigError(place.told(f"arms: the shares are {total:g} together, not {WHOLE}"))
    return dict(value)


def _named(value: Any, place: Any) -> Mapping[AgentMode, tuple[str, ...]]:
    _check_arms(value, place, "users")
    found: dict[AgentMode, tuple[str, ...]] = {}
    seen: set[str] = set()
    for arm, users in value.items():
        if not isinstance(users, list | tuple) or not all(isinstance(user, str) for user in users):
            raise ConfigError(place.told(f"users: {arm} must be a list of names"))
        if twice := seen & set(users):
            raise ConfigError(place.told(f"users: {sorted(twice)[0]!r:.80} is in two arms"))
        seen |= set(users)
        found[arm] = tuple(users)
    return found


def _check_arms(value: Any, place: Any, name: str) -> None:
    if not isinstance(value, Mapping):
        raise ConfigError(place.told(f"{name} must be a table, such as {{code = 25, direct = 75}}"))
    for arm in value:
        if arm not in MODES:
            allowed = ", ".join(MODES)
            raise ConfigError(place.told(f"{name}: {arm!r:.80} is no arm: they are {allowed}"))


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """The `[experiment]` table."""

    arms: Annotated[
        Mapping[AgentMode, float], ReadBy(_shares), Described("a table of modes and shares")
    ] = field(default_factory=dict)
    """Per cent of the users that each mode has, such as {code = 25, direct = 75}; they are 100
    together. Empty: there is no experiment, and [agent] says the mode."""
    users: Annotated[
        Mapping[AgentMode, tuple[str, ...]], ReadBy(_named), Described("a table of modes and users")
    ] = field(default_factory=dict)
    """Users who are in an arm whatever the shares are, such as {code = ["user-7"]}."""

    def __bool__(self) -> bool:
        return bool(self.arms or self.users)

    def arm_of(self, user: str) -> AgentMode | None:
        """Return the arm that a user is in; None where no experiment is about this user."""
        for arm, users in self.users.items():
            if user in users:
                return arm
        point, end = point_of(user), 0.0
        arms = [arm for arm in ORDER if self.arms.get(arm)]
        for arm in arms:
            end += self.arms[arm]
            if point < end:
                return arm
        return arms[-1] if arms else None


def point_of(user: str) -> float:
    """Return where a user is on the line, from 0 up to 100: always the same."""
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / _POINTS * WHOLE
