"""A question about a file, answered with a plot: `python examples/agents/ask_plot.py [FILE]`."""

import asyncio
import sys
from pathlib import Path

from conversation import model_of, show

from divingbell import Divingbell
from divingbell.agent.history import Answered
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says

DIVE = "minute,depth\n" + "".join(f"{n},{n * (40 - n) / 20:.1f}\n" for n in range(41))
CODE = """
import matplotlib.pyplot as plt
import pandas as pd

dive = pd.read_csv("dive.csv")
plt.plot(dive.minute, -dive.depth)
plt.show()
print(f"deepest: {dive.depth.max()} m at minute {dive.depth.idxmax()}")
"""
SCRIPT = [
    Says("I look at the file and draw it.", CODE),
    Says("The dive went down to 20 m and took 40 minutes."),
]


async def main(path: Path) -> None:
    async with Divingbell() as bell, bell.session() as session:
        await session.files.put("dive.csv", DIVE)
        # Nobody says how tools are used: there is data, so the agent writes code.
        agent = await open_agent(bell, session, model_of(SCRIPT))
        await show(agent, "Draw the dive in dive.csv.")
    images = [
        each for entry in agent.history if isinstance(entry, Answered) for each in entry.images
    ]
    path.write_bytes(images[0].data)
    print(f"{path}: {images[0].type}")


asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dive.png")))
