"""Clients that others wrote, unchanged: each in an environment of its own."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import real_servers
from tests.surfaces.http.jupyter.conftest import Served
from tests.surfaces.http.jupyter.talking import V1
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "jupyter.md"
EXAMPLE = ROOT / "examples" / "jupyter" / "run_notebook.py"
LAB_TOKEN = "the-token-of-the-lab"

KERNEL_CLIENT = """
import json, sys
from jupyter_kernel_client import JupyterKernelClient

told = {}
with JupyterKernelClient(server_url=sys.argv[1], token=sys.argv[2]) as kernel:
    told["ran"] = kernel.execute("print('deep')\\n6 * 7")
    told["failed"] = kernel.execute("1 / 0")["outputs"][0]["ename"]
    told["table"] = sorted(
        kernel.execute("import pandas as pd; pd.DataFrame({'a': [1]})")["outputs"][0]["data"]
    )
    told["updated"] = kernel.execute(
        "from IPython.display import display\\n"
        "handle = display('first', display_id=True); handle.update('last')"
    )["outputs"]
    kernel.execute("depths = [12, 40]")
    told["variables"] = [each["name"] for each in kernel.list_variables()]
    kernel.interrupt()
    kernel.restart()
    told["restarted"] = kernel.execute("depths")["outputs"][0]["ename"]
print(json.dumps(told))
"""
NBCLIENT = """
import json, nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(code) for code in ("depths = [12, 40]", "print(sum(depths))")]
notebook = nbformat.v4.new_notebook(cells=cells)
manager = "jupyter_server.gateway.managers.GatewayKernelManager"
NotebookClient(notebook, kernel_manager_class=manager, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""


async def run(*command: str | Path, **environment: str) -> str:
    """Run a program to its end, beside the server; return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(), PATIENCE * 3)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, errors.decode()
    return out.decode()


def python() -> str:
    return real_servers.framework_python("jupyter")


def is_as_it_should_be(told: dict[str, Any]) -> bool:
    """Whether a kernel did for jupyter-kernel-client what the script asks of it."""
    text, value = told["ran"]["outputs"]
    assert text == {"output_type": "stream", "name": "stdout", "text": "deep\n"}
    assert value["data"] == {"text/plain": "42"}
    assert told["ran"]["status"] == "ok" and told["ran"]["execution_count"] == 1
    assert told["failed"] == "ZeroDivisionError" and told["restarted"] == "NameError"
    assert told["table"] == ["text/html", "text/plain"]
    assert [each["data"]["text/plain"] for each in told["updated"]] == ["'last'"]
    assert "depths" in told["variables"]
    return True


async def test_jupyter_kernel_client(ada: Served) -> None:
    said = await run(python(), "-c", KERNEL_CLIENT, f"{ada.url}/jupyter", ada.token)
    assert is_as_it_should_be(json.loads(said))


@contextlib.asynccontextmanager
async def jupyterlab(served: Served, folder: Path) -> AsyncIterator[str]:
    """JupyterLab, as a person starts it, with its kernels from here."""
    places = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    (folder / "notebooks").mkdir()
    process = await asyncio.create_subprocess_exec(
        str(Path(python()).with_name("jupyter")), "lab", "--no-browser", "--allow-root",
        "--port=0", f"--ServerApp.root_dir={folder / 'notebooks'}",
        f"--IdentityProvider.token={LAB_TOKEN}",
        f"--gateway-url={served.url}/jupyter", f"--GatewayClient.auth_token={served.token}",
        env={**os.environ, **places}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE * 3):
            found = None
            while found is None:
                line = (await process.stderr.readline()).decode()
                assert line, "JupyterLab has ended"
                found = re.search(r"(http://127\.0\.0\.1:\d+)/lab", line)
        reading = asyncio.create_task(process.stderr.read())
        yield found[1]
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE)
    await reading


async def test_jupyterlab_runs_a_notebook_in_kernels_of_ours(ada: Served, tmp_path: Path) -> None:
    before = {each["id"] for each in (await ada.http.get("/kernels")).json()}
    async with (
        jupyterlab(ada, tmp_path) as lab,
        httpx2.AsyncClient(
            base_url=lab, headers={"Authorization": f"token {LAB_TOKEN}"}, timeout=PATIENCE
        ) as http,
    ):
        specs = (await http.get("/api/kernelspecs")).json()
        assert specs["kernelspecs"]["python3"]["spec"]["display_name"] == "Python 3 (Divingbell)"
        notebook = {"path": "dive.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
        opened = (await http.post("/api/sessions", json=notebook)).json()
        ours = {each["id"] for each in (await ada.http.get("/kernels")).json()} - before
        assert ours == {opened["kernel"]["id"]}
        said = await run(python(), "-c", KERNEL_CLIENT, lab, LAB_TOKEN)
        assert is_as_it_should_be(json.loads(said))
        await http.delete(f"/api/sessions/{opened['id']}")

        async def is_gone() -> bool:
            return (await ada.http.get(f"/kernels/{opened['kernel']['id']}")).status_code == 404

        await until(is_gone, "JupyterLab ends the kernel of a notebook that is closed")


async def test_the_library_of_jupyterlab_and_vs_code(ada: Served) -> None:
    command, arguments = real_servers.with_node_packages(Path(__file__).with_name("notebook.mjs"))
    said = await run(command, *arguments, f"{ada.url}/jupyter/", ada.token)
    assert json.loads(said.splitlines()[-1]) == {
        "implementation": "divingbell",
        "kinds": ["status", "execute_input", "stream", "execute_result", "status"],
        "status": "ok",
        "matches": ["print"],
        "interrupted": "KeyboardInterrupt",
        "restarted": "NameError",
        "protocol": V1,
    }


async def test_the_example_runs_a_notebook_and_keeps_its_outputs(
    ada: Served, tmp_path: Path
) -> None:
    cells = [
        {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, "source": source,
         **({"outputs": [], "execution_count": None} if kind == "code" else {})}
        for at, (kind, source) in enumerate(
            [("markdown", "# A dive"), ("code", "depths = [12, 40]"), ("code", "sum(depths)")]
        )
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "dive.ipynb"
    path.write_text(json.dumps(notebook))
    await run(python(), EXAMPLE, ada.url, path, DIVINGBELL_TOKEN=ada.token)
    kept = json.loads(path.read_text())["cells"]
    assert kept[2]["outputs"][0]["data"] == {"text/plain": ["52"]}
    assert (kept[1]["execution_count"], kept[2]["execution_count"]) == (1, 2)


async def test_nbclient_works_where_no_token_is_asked_for(open_server: str) -> None:
    said = await run(python(), "-c", NBCLIENT, JUPYTER_GATEWAY_URL=f"{open_server}/jupyter")
    [first, second] = json.loads(said)
    assert first == [] and second[0]["text"] == "52\n"


@pytest.mark.parametrize("block", re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.S))
async def test_what_the_page_shows_stands_in_the_example(block: str) -> None:
    assert block in EXAMPLE.read_text("utf-8")


async def test_the_versions_on_the_page_are_those_that_are_tested() -> None:
    page = PAGE.read_text("utf-8")
    pinned = (ROOT / "requirements" / "jupyter.txt").read_text("utf-8")
    for package in ("jupyterlab", "jupyter-kernel-client", "nbclient"):
        [version] = re.findall(rf"^{package}==([\d.]+)", pinned, re.M)
        assert f"{package} {version}" in page
    packages = json.loads((ROOT / "tests" / "node" / "package.json").read_text("utf-8"))
    assert f"@jupyterlab/services {packages['dependencies']['@jupyterlab/services']}" in page
