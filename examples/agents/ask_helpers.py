"""Letters are judged by helpers, several at once: each reads one, the model that asks reads none.

A helper has a session of its own, may call one tool, and returns plain data.
"""

import asyncio

from conversation import model_of, show

from divingbell import Divingbell
from divingbell.agent.model import ModelRequest
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says

LETTERS = {
    1: "The regulator froze at 30 m. I want my money back.",
    2: "Thank you for the fins, they fit.",
    3: "Where is my parcel? It was promised for Monday.",
}
CODE = """
import asyncio
from servers.host import letters

task = "Read letter `number` and say in one word what it is about: complaint, thanks or question."
numbers = await letters()
tools = ["host.read_letter"]
helpers = [delegate(task, {"number": n}, tools=tools, budget=20_000) for n in numbers]
print(dict(zip(numbers, await asyncio.gather(*helpers))))
"""
READING = "from servers.host import read_letter\nprint(read_letter(number=number))"


def letters() -> list[int]:
    """Return the numbers of all letters."""
    return list(LETTERS)


def read_letter(number: int) -> str:
    """Return the text of a letter."""
    return LETTERS[number]


def helper(request: ModelRequest) -> Says:
    """What a model would say in the place of a helper."""
    last = request.entries[-1].text
    words = {"money back": "complaint", "Thank": "thanks", "Where": "question"}
    found = next((kind for word, kind in words.items() if word in last), None)
    return Says("", READING) if found is None else Says(found)


def scripted(request: ModelRequest) -> Says:
    if "You are a helper" in request.instructions:
        return helper(request)
    if len(request.entries) == 1:
        return Says("Each letter goes to a helper.", CODE)
    return Says("One complaint (letter 1), one thank-you and one question.")


async def main() -> None:
    async with Divingbell() as bell, bell.session() as session:
        bell.tool(letters)
        bell.tool(read_letter)
        agent = await open_agent(bell, session, model_of([scripted] * 20), mode="code")
        done = await show(agent, "What are the letters about?")
    print(f"{done.turns} turns of its own")


asyncio.run(main())
