"""The mode that was chosen for a conversation, and what is written down of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Mode = Literal["code", "direct", "hybrid"]
_MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode of a conversation, and why it is that one."""

    mode: Mode
    why: str = ""
    """For the person; empty where the settings say it."""
    arm: str = ""
    """The arm of an experiment that the user is in; empty where there is none."""

    @property
    def has_code(self) -> bool:
        return self.mode != "direct"

    @property
    def has_tools(self) -> bool:
        return self.mode != "code"

    def as_data(self) -> dict[str, str]:
        """Return it as data that JSON can hold."""
        return {"mode": self.mode, "why": self.why, "arm": self.arm}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "ModeChoice | None":
        """Return the choice that data stands for; None for a mode that is not known."""
        mode = next((each for each in _MODES if each == data["mode"]), None)
        if mode is None:
            return None
        return cls(mode, str(data.get("why", "")), str(data.get("arm", "")))
