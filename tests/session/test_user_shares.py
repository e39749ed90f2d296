"""Sessions of one user that compute at the same time weigh together what one does."""

import asyncio
import contextlib
from typing import Any

from divingbell import Divingbell, Session
from divingbell.principal import Principal
from divingbell.session.user_shares import PATIENCE, UserShares
from tests import real_servers
from tests.waiting import until

ADA, BOB = Principal("ada"), Principal("bob")


class Fake:
    """A sandbox as far as it is weighed."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.weight = 1.0

    def consumption(self) -> "Fake":
        return self

    def share(self, part: float) -> None:
        self.weight = part


def look(shares: UserShares, sandboxes: list[tuple[Principal, Any]], *computing: Fake) -> None:
    for sandbox in computing:
        sandbox.cpu_seconds += 0.1
    for _ in shares.look(sandboxes):
        pass


def test_those_that_compute_share_and_those_that_wait_weigh_all() -> None:
    shares, (one, two, three, other) = UserShares(), [Fake() for _ in range(4)]
    all_of_them: list[tuple[Principal, Any]] = [(ADA, one), (ADA, two), (ADA, three), (BOB, other)]
    look(shares, all_of_them, one, two, other)
    assert one.weight == 1  # whatever it had used before
    look(shares, all_of_them, one, two, other)
    assert [each.weight for each in (one, two, three, other)] == [0.5, 0.5, 1, 1]
    for _ in range(PATIENCE - 1):
        look(shares, all_of_them, one, other)
        assert two.weight == 0.5  # it may not have had its turn
    look(shares, all_of_them, one, other)
    assert [each.weight for each in (one, two, three, other)] == [1, 1, 1, 1]
    look(shares, all_of_them, one, two, three)
    assert {each.weight for each in (one, two, three)} == {1 / 3}
    look(shares, [(ADA, one), (BOB, other)], one)
    assert one.weight == 1 and not (shares._used or shares._lowered or shares._still)


def weight(session: Session) -> int:
    handle: Any = session._handle
    group = handle.sandbox._group
    folder = group._folders["cpu"] if hasattr(group, "_folders") else group._folder
    path = folder / ("cpu.shares" if hasattr(group, "_folders") else "cpu.weight")
    return int(path.read_text())


async def test_the_kernel_is_told(bell: Divingbell) -> None:
    async with contextlib.AsyncExitStack() as stack:
        spinning = [
            await stack.enter_async_context(bell.session(user="ada", timeout=60, cpu_seconds=60))
            for _ in range(4)
        ]
        other = await stack.enter_async_context(bell.session(user="bob"))
        if spinning[0].isolation.limits_by == "rlimits":
            real_servers.missing("without control groups nothing weighs sessions")
        whole = weight(other)
        runs = [asyncio.create_task(session.run("while True: pass")) for session in spinning]
        await until(lambda: {weight(each) for each in spinning} == {whole // 4}, "they share")
        assert weight(other) == whole
        for session in spinning:
            await session.interrupt()
        await asyncio.gather(*runs)
        await until(lambda: {weight(each) for each in spinning} == {whole}, "they weigh all again")
