"""The cost of answers in words, and why an answer ended."""

from divingbell.agent.events import Done, HelperEnded, HelperStarted, StopReason
from divingbell.agent.model import ModelUsage
from divingbell.amounts import amount
from divingbell.text import one_line

MAX_TASK = 80
"""Characters of a helper's task, and of the names of its tools."""

_WORDS: dict[StopReason, str] = {
    "turns": "stopped: the model has made as many requests as one answer may have "
    "([agent] turns); ask it to go on",
    "tokens": "stopped: the answer has used its tokens ([agent] tokens); ask it to go on",
    "money": "stopped: the answer has used its money ([agent] money); ask it to go on",
    "failing": "stopped: too many cells have failed one after the other; say what to try instead",
    "length": "the reply was longer than the provider allows, so it ends here and none of its code "
    "was run; ask it to go on",
    "refused": "the provider's filter has refused to go on",
    "cut": "the reply ended before the model had, so none of its code was run; ask again",
    "empty": "the model has said nothing; ask again, or another way",
}


def words_for(done: Done) -> str:
    """Return why it stopped, for a person; empty where it has answered."""
    return _WORDS.get(done.reason, "")


def cost_of_answer(done: Done) -> str:
    """Return what an answer has cost, in one line."""
    return f"{amount(done.turns, 'request')}, {usage_in_words(done.total)}"


def words_on_helper(event: HelperStarted | HelperEnded) -> str:
    """Return what is told of a helper, in one line: its task and tools, or what it has cost."""
    who = f"helper {event.helper} ({one_line(event.task, MAX_TASK)})"
    if isinstance(event, HelperStarted):
        tools = one_line(", ".join(event.tools), MAX_TASK) or "no tools"
        return f"{who} begins, with {tools} and at most {event.tokens:,} tokens"
    turns = amount(event.turns, "request")
    return f"{who}: {event.outcome} after {turns}, {usage_in_words(event.total)}"


def usage_in_words(usage: ModelUsage) -> str:
    """Return tokens and money in words."""
    cached = f" ({usage.cached_tokens:,} from the cache)" if usage.cached_tokens else ""
    words = f"{usage.input_tokens:,} tokens read{cached}, {usage.output_tokens:,} written"
    return words if usage.cost is None else f"{words}, {money(usage.cost)}"


def money(dollars: float) -> str:
    """Return an amount of money; small ones with as many places as it takes to see something."""
    return f"${dollars:.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"
