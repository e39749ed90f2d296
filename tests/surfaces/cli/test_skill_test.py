"""`divingbell skills test` runs an example, says how it went, and notes it."""

import asyncio
from pathlib import Path

from divingbell.host.login import login_name
from divingbell.skills import checks, document, skill_file
from divingbell.skills.record import Record
from divingbell.skills.store import Store, Stores
from tests.skills.samples import made

from .command import runner


def keep(store: Store, code: str) -> None:
    reading = asyncio.run(checks.read("double", code, "print(double(21))"))
    files = {"scripts/double.py": code.encode()}
    skill = skill_file.make("double", "Doubles.", document.body(reading, ()), files)
    store.save(skill, Record("session", state="changed"))


def test_an_example_is_run_and_its_end_is_kept(tmp_path: Path) -> None:
    run, data = runner(tmp_path), tmp_path / "data"
    store = Stores(data / "divingbell/skills").of(login_name())
    keep(store, 'def double(x):\n    """Double."""\n    return 2 * x\n')
    done = run("skills", "test", "double", XDG_DATA_HOME=str(data))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\ndouble: its example went well\n"
    assert store.get("double").record.state == "ready"
    keep(store, 'def double(x):\n    """Double."""\n    return 2 / (x - 21)\n')
    done = run("skills", "test", "double", XDG_DATA_HOME=str(data))
    assert done.returncode == 1 and "ZeroDivisionError" in done.stdout
    assert store.get("double").record.state == "failed"
    store.save(made(), Record("added"))
    done = run("skills", "test", "top-customers", XDG_DATA_HOME=str(data))
    assert done.returncode != 0 and "has no example" in done.stderr
