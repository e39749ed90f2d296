"""The replay of a shop's tasks works, by a script and by a model that is asked over HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agent.provider_server import Say, serving_beside

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
WAYS = ["sequential", "parallel", "code"]


def bench(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "replay.py", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    kept = tmp_path_factory.mktemp("replay") / "rows.json"
    shown = bench("--quick", f"--json={kept}")
    found: list[dict[str, Any]] = json.loads(kept.read_text("utf-8"))["rows"]
    assert all(row["tasks"] in shown and row["way"] in shown for row in found)
    return found


def tokens(rows: list[dict[str, Any]], tasks: str) -> list[float]:
    """The tokens of sequential, parallel and code, for tasks whose name begins so."""
    found = [row for row in rows if row["tasks"].startswith(tasks)][:3]
    assert [row["way"] for row in found] == WAYS
    return [row["tokens"] for row in found]


def test_a_quick_run_has_every_part(rows: list[dict[str, Any]]) -> None:
    for part in ("that read", "that list writes only", "all:", "all, with", "beside 5"):
        sequential, parallel, code = tokens(rows, part)
        assert sequential >= parallel > code
    assert tokens(rows, "three tools that write")


def test_code_loses_where_one_short_answer_is_all(rows: list[dict[str, Any]]) -> None:
    sequential, parallel, code = tokens(rows, "one tool, one short answer")
    assert sequential == parallel < code


def test_much_to_read_stays_in_code(rows: list[dict[str, Any]]) -> None:
    _, parallel, code = tokens(rows, "1,000 expenses")
    assert code < parallel / 20
    for work in ("a workflow over three servers", "a job that is polled"):
        assert tokens(rows, work)[2] < tokens(rows, work)[1]


READ = """
from servers.retail import find_user_id_by_name_zip, get_order_details
print(find_user_id_by_name_zip(first_name="Yusuf", last_name="Rossi", zip="19122"))
print(get_order_details(order_id="#W2378156"))
"""
WRITE = """
from servers.retail import exchange_delivered_order_items
exchange_delivered_order_items(
    order_id="#W2378156",
    item_ids=["1151293680", "4983901480"],
    new_item_ids=["7706410293", "7747408585"],
    payment_method_id="credit_card_9513926",
)
"""


def test_a_live_run_says_what_the_model_read_and_which_tasks_were_done() -> None:
    first = [Say(code=READ), Say("Shall I?"), Say(code=WRITE), Say("Done.")]
    with serving_beside() as provider:
        provider.says = [*first, *[Say("I can't.")] * 6]
        address = f"--base-url={provider.url}/v1"
        shown = bench("--model=openai-chat:tested", address, "--tasks=2", "--way=code")
        sent = json.loads(provider.bodies[0])
    assert "Retail agent policy" in json.dumps(sent["messages"])
    cells = [cell.strip() for cell in shown.splitlines()[-1].split("|")[1:-1]]
    assert cells[:4] == ["code", "2", "1", "5.0"], "of two tasks one is done, in ten turns"
