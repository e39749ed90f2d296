"""A job is polled until it is done: standing in a loop costs the model nothing."""

import asyncio

from conversation import model_of, show

from divingbell import Divingbell
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says

LOOKS = 12
CODE = """
import time
from servers.host import job_state, start_job

number = start_job("fill the tanks")
while (state := job_state(number))["state"] != "done":
    time.sleep(0.05)
print(state)
"""
SCRIPT = [Says("I start it and wait.", CODE), Says("The tanks are full, at 200 bar.")]


class Jobs:
    """Jobs of this program, which take a while."""

    def __init__(self) -> None:
        self.looks = 0

    def start_job(self, what: str) -> int:
        """Start a job and return its number."""
        return 7

    def job_state(self, number: int) -> dict[str, str]:
        """Look how far a job is."""
        self.looks += 1
        return {"state": "done", "bar": "200"} if self.looks >= LOOKS else {"state": "running"}


async def main() -> None:
    jobs = Jobs()
    async with Divingbell() as bell, bell.session() as session:
        bell.tool(jobs.start_job)
        bell.tool(jobs.job_state)
        agent = await open_agent(bell, session, model_of(SCRIPT), mode="code")
        done = await show(agent, "Fill the tanks, and tell me when they are full.")
    print(f"{jobs.looks} looks in {done.turns} turns")


asyncio.run(main())
