"""A Divingbell whose code calls a real server until it is killed: `python audit_caller.py FOLDER`.

What the server has got is in FOLDER/sent-…; see audit_called_server.py. The key of the log is
FOLDER/audit.key.
"""

import asyncio
import sys
from pathlib import Path

from divingbell import Divingbell
from divingbell.audit.signing import FILE_NAME

SERVER = str(Path(__file__).with_name("audit_called_server.py"))
TIMEOUT = 120.0
CODE = """
import asyncio
from servers.shop import refund
order = 0
while True:
    for _ in range(5):
        order += 1
        refund(order)
    await asyncio.gather(*[refund(order + each) for each in range(1, 6)])
    order += 5
"""


async def main(folder: Path) -> None:
    table = {"folder": "log", "heads": "heads", "key_file": FILE_NAME}
    settings = {"audit": "on", "audit_log": {each: f"{folder}/{table[each]}" for each in table}}
    shop = {"command": sys.executable, "args": [SERVER, str(folder)]}
    house = Divingbell(servers={"shop": shop}, pool=0, preload=(), **settings)  # type: ignore[arg-type]
    async with house as bell, bell.session(user="anna") as session:
        await session.run(CODE, timeout=TIMEOUT)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
