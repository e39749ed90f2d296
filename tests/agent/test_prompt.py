"""The prompt in a file of one's own, and what keeps it from being used."""

from pathlib import Path

import pytest

from divingbell import ConfigError, Divingbell
from divingbell.agent import prompt
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says, ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_prompt_of_ones_own_takes_the_place_of_the_usual_one(tmp_path: Path) -> None:
    file = tmp_path / "prompt.md"
    file.write_text("You count fish – nothing else.")
    model = ScriptedModel([Says("Three."), Says("Four.")])
    async with (
        Divingbell(pool=0, preload=(), agent={"prompt": str(file)}) as bell,
        bell.session() as session,
    ):
        agent = await open_agent(bell, session, model)
        for question in ("how many?", "and now?"):
            async for _ in agent.ask(question):
                file.write_text("Another one.")  # is for the next conversation
    [first, second] = [request.instructions for request in model.requests]
    assert first == second
    own, at_hand = first.split("\n", 1)
    assert own == "You count fish – nothing else." and at_hand.startswith("Packages: ")
    assert prompt.instructions(None, (), ())[:40] not in first


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "can't be read"),
        (b"\xff\xfe\x00", "can't be read"),
        (b"x" * (prompt.MAX_PROMPT + 1), "has more than 100,000 characters"),
    ],
)
def test_a_prompt_that_can_not_be_used_is_told_in_words(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "prompt.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"the prompt {file} {words}"):
        prompt.instructions(file, (), ())
