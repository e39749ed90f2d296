"""Ledgers of all replicas are added up in one file, that of the gateway's machine."""

from pathlib import Path

import pytest

from divingbell.errors import InvalidInput
from divingbell.host import places
from divingbell.journal import totals
from divingbell.journal.serve_arm_totals import Used
from divingbell.models import Ledger, ToolUse
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.settings.policy import Policy
from tests.scale.gateway import hosts

LEDGER = Ledger(code_tokens=7, direct_call_tokens=40, calls=2, tools=(ToolUse("shop.buy", 2, 40),))


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def test_what_replicas_count_is_in_one_report_whenever_the_gateway_is_there() -> None:
    async with hosts.running() as found, hosts.linked(found) as one, hosts.linked(found) as two:
        first, second = SharedGateway(one, Policy()), SharedGateway(two, Policy())
        first.count(LEDGER, "anne")
        await first.stop()
        await found.stop()
        second.count(LEDGER, "anne")
        second.count(None, "bert")
        second.count(Used("code", executions=1, read=7), "bert")
        await found.start()
        await second.stop()
        await found.stop()  # what was taken is written
        report = totals.report(places.data_folder() / totals.FILE_NAME, 1)
    assert (report.total.executions, report.total.calls, report.total.code_tokens) == (2, 4, 14)
    assert [(each.name, each.calls, each.tokens) for each in report.tools] == [("shop.buy", 4, 80)]
    assert report.refused == {"bert": 1}
    assert report.serve_arms["code"].read == 7


async def test_a_ledger_that_makes_no_sense_is_counted_nowhere() -> None:
    async with hosts.running() as found, hosts.linked(found) as link:
        for body in (b"7", b'[["anne", "ledger", {"calls": "many"}]]', b'[[1, "refused", {}]]'):
            stream = await link.laid().request_with({"op": "count", "json": len(body)}, body)
            with pytest.raises(InvalidInput, match="makes no sense"):
                await stream.receive()
    assert not (places.data_folder() / totals.FILE_NAME).exists()
