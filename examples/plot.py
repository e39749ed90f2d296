"""A figure, as a PNG file of this machine: `python examples/plot.py [FILE]`."""

import asyncio
import sys
from pathlib import Path

from divingbell import Divingbell

CODE = """
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 200)
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), label="cos")
plt.legend()
plt.show()
"""


async def main(path: Path) -> None:
    async with Divingbell() as bell:
        result = await bell.execute(CODE)
    for output in result.outputs:
        if output.type == "image/png" and isinstance(output.data, bytes):
            path.write_bytes(output.data)
            print(f"{path}: {len(output.data):,} bytes")


asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "plot.png")))
