"""An answer that a program reads, where it breaks off."""

import json

from divingbell.agent.events import CellStarted, Text
from divingbell.agent.model import ModelFailed
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.chat_once import Collected


def test_the_words_of_a_reply_that_broke_off_are_printed() -> None:
    collected = Collected("tested")
    collected.take(Text("I'll look."))
    collected.take(CellStarted("call_1", "x = 1"))
    collected.take(Text("The answer "))
    collected.take(Text("is\x1b[2J"))
    collected.failure = ModelFailed("it broke off", "connection")
    assert collected.printed({}, as_json=False) == ["The answer is"]
    told = json.loads(collected.to_json())
    assert (told["reason"], told["answer"]) == ("failed", "The answer is\x1b[2J")
    assert collected.status == exit_status.MODEL
