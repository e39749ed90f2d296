"""Skills for tests."""

from divingbell.skills import skill_file
from divingbell.skills.record import Record
from divingbell.skills.skill import Skill

RECORD = Record("added")


def made(name: str = "top-customers", code: str = "def run():\n    return 1\n") -> Skill:
    """Return a small skill with code of its own."""
    module = name.replace("-", "_")
    return skill_file.make(
        name,
        f"Runs {name}. Use it in tests.",
        f"# {name}\n\nCall `run()`.",
        {f"scripts/{module}.py": code.encode()},
        metadata={"author": "tests"},
    )
