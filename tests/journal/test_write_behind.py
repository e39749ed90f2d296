"""Writing behind: items are written in a thread, as many together as wait."""

from divingbell.journal.write_behind import WriteBehind
from tests.waiting import PATIENCE, until


async def test_items_that_come_while_others_gather_are_written_with_them() -> None:
    batches: list[list[int]] = []
    behind: WriteBehind[int] = WriteBehind("test", batches.append, gathering=PATIENCE)
    for number in range(5):
        assert behind.add(number, most=5)
    assert not behind.add(6, most=5)
    await behind.close()  # which waits for nobody else
    assert batches == [[0, 1, 2, 3, 4]]


async def test_what_has_gathered_is_written_without_a_word() -> None:
    batches: list[list[int]] = []
    behind: WriteBehind[int] = WriteBehind("test", batches.append, gathering=0.01)
    for number in range(2):
        assert behind.add(number, most=5)
        await until(lambda count=number: sum(map(len, batches)) > count, "it is written")
    await behind.close()
