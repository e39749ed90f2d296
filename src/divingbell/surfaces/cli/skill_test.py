"""`divingbell skills test`: the example of a skill, run with the real tools."""

from dataclasses import replace
from typing import TYPE_CHECKING

from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.running import opened
from divingbell.text import visible

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

MOST_SHOWN = 20_000


async def run(name: str, user: str, settings: "Settings") -> int:
    """Run the example, show what came of it, return the exit status.

    Raises:
        SkillRefused: there is no such skill, or it has no example.
    """
    async with opened(replace(settings, skills="on")) as bell:
        result = await bell.skills.test(name, user=user)
    print(visible(result.text, MOST_SHOWN), end="")
    if result.status == "ok":
        print(f"{visible(name, 80)}: its example went well")
    else:
        print(visible(str(result.error or result.status), MOST_SHOWN))
        print(f"{visible(name, 80)}: its example failed, and it is not offered until it does not")
    return exit_status.of_result(result)
