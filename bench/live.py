"""The shop's tasks done by a real model, through the agent: `./dev bench replay --model NAME`.

Needed is a model that calls tools: the key of a provider in the environment
(--model anthropic:claude-sonnet-5 with ANTHROPIC_API_KEY), or one on this machine (--model
openai-chat:qwen3 --base-url http://localhost:11434/v1). It costs what the provider takes, and
--tasks says how many are done, of the 106 that change something. The person is played by rule:
says what the task says, and yes to each question, until the shop is as it should be. So tasks in
which a person changes their mind come out worse than with a person.
"""

import argparse
import sys
from contextlib import aclosing
from dataclasses import dataclass
from statistics import mean

import retail
import table
from replaying import YES
from retail_bell import lean, opened
from retail_tasks import Task

from divingbell import Divingbell
from divingbell.agent.choosing import choose
from divingbell.agent.events import Done
from divingbell.agent.model import Model, ModelUsage
from divingbell.agent.modes import Mode
from divingbell.agent.opening import connect_model, open_agent
from divingbell.settings.agent import AgentSettings

WAYS: tuple[Mode, ...] = ("direct", "code")
ANSWERS = 6
"""Things that the person says in one conversation, at most."""
ONE_AT_A_TIME = "You should at most make one tool call at a time"
"""A rule of the benchmark's own that would forbid what is compared here."""
HEADINGS = ("way", "tasks", "done", "turns", "input tokens", "of them cached", "dollars")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a conversation went."""

    turns: int
    usage: ModelUsage
    is_done: bool
    """Whether the shop is as it should be."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run with a real model."""
    parser.add_argument("--model", metavar="NAME", help="ask this one: provider:model")
    parser.add_argument("--base-url", default="", metavar="URL", help="where it is asked")
    parser.add_argument("--key-variable", default="", metavar="NAME", help="has the key for it")
    parser.add_argument(
        "--way", action="append", choices=WAYS, help="with --model; may be repeated"
    )


async def measure(chosen: argparse.Namespace, some: list[Task]) -> str:
    """Return a table of what the model has read and done."""
    settings = AgentSettings(
        model=chosen.model, base_url=chosen.base_url, key_variable=chosen.key_variable
    )
    model = connect_model(choose(settings), settings)
    shop = retail.Shop()
    outcomes: dict[Mode, list[Outcome]] = {way: [] for way in chosen.way or WAYS}
    try:
        async with lean() as bell, opened(bell, shop):
            for task in some:
                print(f"· task {task.number}", file=sys.stderr, flush=True)
                for way, found in outcomes.items():
                    found.append(await converse(bell, shop, model, task, way))
    finally:
        await model.close()
    return table.aligned([HEADINGS, *(_cells(way, each) for way, each in outcomes.items())])


async def converse(
    bell: Divingbell, shop: retail.Shop, model: Model, task: Task, way: Mode
) -> Outcome:
    """Have the model do one task."""
    shop.reset()
    words, turns = opening(task), 0
    async with bell.session() as session:
        agent = await open_agent(bell, session, model, mode=way)
        for _ in range(ANSWERS):
            async with aclosing(agent.ask(words)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        turns += event.turns
            if shop.state() == task.state:
                break
            words = YES
        return Outcome(turns, agent.total, shop.state() == task.state)


def opening(task: Task) -> str:
    """Return the first words: the shop's policy, and the person's, as they were told to them."""
    policy = retail.data()["policy"]
    rules = [line for line in policy.splitlines() if ONE_AT_A_TIME not in line]
    return "\n".join(
        [*rules, "", "A customer is here, who was told this about themselves:", task.words]
    )


def _cells(way: Mode, outcomes: list[Outcome]) -> tuple[str, ...]:
    costs = [each.usage.cost for each in outcomes if each.usage.cost is not None]
    return (
        way,
        str(len(outcomes)),
        str(sum(each.is_done for each in outcomes)),
        f"{mean(each.turns for each in outcomes):.1f}",
        f"{mean(each.usage.input_tokens for each in outcomes):,.0f}",
        f"{mean(each.usage.cached_tokens for each in outcomes):,.0f}",
        f"{sum(costs):.2f}" if costs else "not known",
    )
