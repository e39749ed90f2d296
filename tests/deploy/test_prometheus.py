"""deploy/: the dashboard and the alerts, with a real Prometheus that reads a real run."""

import asyncio
import contextlib
import importlib.util
import itertools
import json
import math
import re
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from divingbell.journal.metrics import Metrics, Surroundings
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from tests import real_servers
from tests.gateway.galley import galley
from tests.surfaces.http.serving import ANNE, Site, Talking, served

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "divingbell.json"
MONITOR = "the-token-of-the-monitor"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
PATIENCE = 60.0
SERIES = re.compile(r"\bdivingbell_\w+")
CODE = """
from servers.galley import add, echo
print([add(number, 1) for number in range(20)], echo("anna.larsen@example.com " * 20)[:30])
"""


def _script() -> ModuleType:
    path = ROOT / "scripts" / "make_dashboard.py"
    spec = importlib.util.spec_from_file_location("make_dashboard", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_dashboard"] = module
    spec.loader.exec_module(module)
    return module


def _queries() -> list[str]:
    """All queries of the dashboard, with a range in the place of Grafana's own word for one."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    return [query.replace("$__rate_interval", "30s") for query in found]


def test_the_dashboard_is_what_the_script_makes() -> None:
    assert _script().text() == DASHBOARD.read_text(), "run ./dev generate"


def test_dashboard_and_alerts_ask_for_series_that_there_are_and_the_dashboard_for_all() -> None:
    made = set[str]()
    for family in Metrics(Surroundings(price=1.0))._registry.collect():
        kinds = {"counter": ("_total",), "histogram": ("_bucket",)}.get(family.type, ("",))
        made |= {f"{family.name}{kind}" for kind in kinds if not family.name.startswith("process_")}
    shown = {name for query in _queries() for name in SERIES.findall(query)}
    assert shown == made
    expressions = re.findall(r"expr: (?:\|\n)?(.+(?:\n {10,}.+)*)", ALERTS.read_text())
    assert len(expressions) == ALERTS.read_text().count("alert:")
    assert {name for text in expressions for name in SERIES.findall(text)} <= made


def test_alerts_come_when_they_should() -> None:
    real_servers.need_program("prometheus")
    for what in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        ran = subprocess.run(["promtool", *what], cwd=ALERTS.parent, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    tested = (ALERTS.parent / "alerts_test.yml").read_text()
    for name in re.findall(r"alert: (\w+)", ALERTS.read_text()):
        assert f"alertname: {name}\n" in tested


def test_the_example_of_a_configuration_is_one() -> None:
    real_servers.need_program("prometheus")
    check = ["promtool", "check", "config", "--syntax-only", "prometheus.yml"]
    ran = subprocess.run(check, cwd=ALERTS.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


# A real run


@contextlib.contextmanager
def _prometheus(folder: Path, target: int) -> Iterator[str]:
    """Run a Prometheus that reads the port; yield its address."""
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: divingbell\n  scrape_interval: 250ms\n"
        f"  scrape_timeout: 250ms\n  static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n"
        f"  authorization: {{credentials: {MONITOR}}}\n"
        f"rule_files: ['{ALERTS}']\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _asked(address: str, query: str) -> list[Any]:
    """The values that Prometheus answers with; none while it starts."""
    words = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?{words}", timeout=PATIENCE) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return [each for each in found if not math.isnan(float(each["value"][1]))]


async def _work(site: Site, number: int) -> None:
    """Do a bit of everything that is counted, in sessions of their own."""
    async with site.client() as client:
        for code in (CODE, "1 / 0", "from servers.galley import fail\nfail('now')"):
            path = f"/api/v1/sessions/session-{number}/execute"
            answer = await client.post(path, json={"code": code})
            assert answer.status_code == 200, answer.text
        await client.get("/api/v1/sessions/nobodys")
        made = await client.post("/api/v1/conversations", json={})
        talk = f"/api/v1/conversations/{made.json()['id']}"
        told = await client.post(f"{talk}/messages", json={"text": "How are you?"})
        assert "I have nothing to say." in told.text, told.text
        await client.delete(talk)


async def test_every_query_of_the_dashboard_is_answered_after_a_real_run(tmp_path: Path) -> None:
    real_servers.need_program("prometheus")
    rules = {"rules": [{"tools": ["galley.fail"], "action": "deny", "when": {"message": "now"}}]}
    settings: Any = {"metrics": "on", "token_price": 3.0, "privacy": "personal"}
    digests = {"anne": hash_of(ANNE), "monitor": hash_of(MONITOR)}
    async with (
        galley(rules, **settings) as (bell, _),
        served(bell, Tokens(digests, frozenset(SCOPES)), Talking().made) as site,
    ):
        with _prometheus(tmp_path, site.port) as address:
            left, rounds = _queries(), itertools.count(1)
            async with asyncio.timeout(PATIENCE):
                while left:
                    await _work(site, next(rounds))
                    answers = [await asyncio.to_thread(_asked, address, each) for each in left]
                    left = [each for each, found in zip(left, answers, strict=True) if not found]
                    print(len(left), "queries have no answer yet:", *left, sep="\n")
