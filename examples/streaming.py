"""Show output while the code still runs."""

import asyncio

from divingbell import Divingbell

CODE = """
import sys, time
for step in range(3):
    print("step", step)
    time.sleep(0.2)
print("a warning", file=sys.stderr)
"all done"
"""


async def main() -> None:
    async with Divingbell() as bell, bell.session() as session:
        async for event in session.stream(CODE):
            if event.type in ("stdout", "stderr"):
                print(event.text, end="", flush=True)
            elif event.type == "result":
                print("value:", event.outputs[0].data)
            elif event.result is not None:  # the last event, done, has the whole result
                print("status:", event.result.status)


asyncio.run(main())
