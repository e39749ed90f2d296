"""deploy/: the dashboard and the alerts, with a real Prometheus that reads a real run."""

import asyncio
import contextlib
import importlib.util
import itertools
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from divingbell import Divingbell
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.journal.metrics import Metrics, Surroundings
from divingbell.principal import Principal
from tests.gateway.galley import galley

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "divingbell.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
PATIENCE = 60.0
SERIES = re.compile(r"\bdivingbell_\w+")
CODE = """
from servers.galley import add, echo
print([add(number, 1) for number in range(20)], echo("anna.larsen@example.com " * 20)[:30])
"""
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None and not os.environ.get("CI"),
    reason="there is no prometheus: apt install prometheus",
)


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


@needs_prometheus
def test_alerts_come_when_they_should() -> None:
    for what in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        ran = subprocess.run(["promtool", *what], cwd=ALERTS.parent, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    tested = (ALERTS.parent / "alerts_test.yml").read_text()
    for name in re.findall(r"alert: (\w+)", ALERTS.read_text()):
        assert f"alertname: {name}\n" in tested


@needs_prometheus
def test_the_example_of_a_configuration_is_one() -> None:
    check = ["promtool", "check", "config", "--syntax-only", "prometheus.yml"]
    ran = subprocess.run(check, cwd=ALERTS.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


# A real run


@contextlib.asynccontextmanager
async def _served(metrics: Metrics) -> AsyncIterator[int]:
    """Serve the metrics at a free port."""

    async def answer(request: Request) -> Response:
        return Response(await metrics.render(), media_type=metrics.content_type)

    app = Starlette(routes=[Route("/metrics", answer)])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


@contextlib.contextmanager
def _prometheus(folder: Path, target: int) -> Iterator[str]:
    """Run a Prometheus that reads the port; yield its address."""
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: divingbell\n  scrape_interval: 250ms\n"
        f"  scrape_timeout: 250ms\n  static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n"
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


async def _work(bell: Divingbell, number: int) -> None:
    """Do a bit of everything that is counted, in a conversation of its own."""
    name = f"conversation-{number}"
    session, _ = await bell.owned.open(Principal("anna", name, "http"), name)
    assert (await session.run(CODE)).status == "ok"
    await session.run("1 / 0")
    await session.run("from servers.galley import fail\nfail('now')")
    async with bell.session(user="bert") as other:
        agent = await open_agent(bell, other, ScriptedModel([Says("Well.")]))
        async for _ in agent.ask("How are you?"):
            pass


@needs_prometheus
async def test_every_query_of_the_dashboard_is_answered_after_a_real_run(tmp_path: Path) -> None:
    rules = {"rules": [{"tools": ["galley.fail"], "action": "deny", "when": {"message": "now"}}]}
    settings: Any = {"metrics": "on", "token_price": 3.0, "privacy": "personal"}
    async with galley(rules, **settings) as (bell, _):
        assert bell.metrics is not None
        async with _served(bell.metrics) as port:
            with _prometheus(tmp_path, port) as address:
                left, rounds = _queries(), itertools.count(1)
                async with asyncio.timeout(PATIENCE):
                    while left:
                        await _work(bell, next(rounds))
                        answers = [await asyncio.to_thread(_asked, address, each) for each in left]
                        left = [
                            each for each, found in zip(left, answers, strict=True) if not found
                        ]
                        print(len(left), "queries have no answer yet:", *left, sep="\n")
