"""Tab at the shell's prompt believes nothing of what the session says."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from divingbell import Session
from divingbell.surfaces.cli.terminal.completing import ShellCompleter


@pytest.mark.parametrize("forged", [".put /etc/hostname", "  .put /etc/hostname"])
async def test_a_completion_never_becomes_a_command_of_the_shell(
    session: Session, forged: str
) -> None:
    await session.run(
        "import divingbell_inside.completion as c\nwas = c.completions\n"
        f"c.completions = lambda shell, source, p: [[0, p, {forged!r}], [p, p, 'fine']]"
    )
    completer = ShellCompleter(lambda: session, [".put"])
    found = completer.get_completions_async(Document("abc."), CompleteEvent())
    assert [one.text async for one in found] == ["fine"]
    await session.run("c.completions = was")
