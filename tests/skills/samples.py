"""Skills for tests."""

from pathlib import Path

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


RUN_BY_PATH = """
import subprocess
folder = skills.path("greet")
ran = subprocess.run([folder / "scripts/greet.sh", "Ann"], capture_output=True, text=True)
ran.stdout + ran.stderr
"""
"""Runs the script of `of_another_agent`, and has what it has said."""


def of_another_agent(folder: Path) -> Path:
    """Write a skill without code for Python, as other agents have them; return the folder above."""
    (folder / "greet/scripts").mkdir(parents=True)
    (folder / "greet/SKILL.md").write_text(
        "---\nname: greet\ndescription: Greets people.\nmodel: large\n---\nRun scripts/greet.sh.\n"
    )
    (folder / "greet/scripts/greet.sh").write_text('#!/bin/sh\necho "hello $1 from $0"\n')
    return folder
