"""A process that writes to an audit log until it is killed: what it has "sent" is in a file.

    python audit_writer.py FOLDER [COUNT]

It intends a call, then notes its number in FOLDER/sent-PID, as a server would that got it, and
then records its end. With a count it ends of itself.
"""

import asyncio
import itertools
import os
import sys
from pathlib import Path

from divingbell.audit import opening
from divingbell.border.border import OpenBorder
from divingbell.journal.events import CallEnded, CallSent
from divingbell.principal import Principal
from divingbell.settings.config import load

ANNA = Principal("anna", "one", "library")
WHOSE = (ANNA, "key", 1, "code", "tool", "shop.refund")


async def main(folder: Path, count: int | None = None) -> None:
    table = {"folder": str(folder / "log"), "heads": str(folder / "heads")}
    chosen = load(None, {"audit": "on", "audit_log": table}, environment={})
    log = await opening.opened(chosen, OpenBorder(), folder, {})
    made = os.open(folder / f"sent-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in itertools.count(1):
        await log.intend(CallSent(number, *WHOSE, {"order": number}))
        os.write(made, f"{number}\n".encode())
        log.note(CallEnded(number, *WHOSE, "ok", "", True, {}, b"", None, b"", 0.0))
        if number == count:
            break
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
