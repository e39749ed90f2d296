"""The setting for skills: whether code can save some, and is offered those that were saved.

Not by default in a program: what code saves outlasts its session, and sessions that no user is
named for share their skills.
"""

from typing import Literal

SkillsMode = Literal["on", "off"]
