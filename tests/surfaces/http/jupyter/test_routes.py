"""Kernels by HTTP: listed, made, ended, and only one's own."""

import pytest

from divingbell import Divingbell
from divingbell.principal import Principal
from tests.surfaces.http.jupyter.conftest import Served
from tests.surfaces.http.jupyter.talking import talking

pytestmark = pytest.mark.anyio


async def test_there_is_one_kind_of_kernel_under_the_name_that_notebooks_have(ada: Served) -> None:
    specs = (await ada.http.get("/kernelspecs")).json()
    assert specs["default"] == "python3"
    assert specs["kernelspecs"]["python3"]["spec"]["language"] == "python"
    assert (await ada.http.get("/kernelspecs/python3")).json() == specs["kernelspecs"]["python3"]
    assert (await ada.http.get("/kernelspecs/ir")).status_code == 404
    assert (await ada.http.get(f"{ada.url}/jupyter/api")).json()["version"]


async def test_a_kernel_is_made_listed_and_ended(ada: Served) -> None:
    made = await ada.http.post("/kernels")
    assert made.status_code == 201
    model = made.json()
    assert made.headers["location"] == f"/jupyter/api/kernels/{model['id']}"
    assert model["execution_state"] == "idle" and model["connections"] == 0
    assert model["last_activity"].endswith("Z")
    listed = (await ada.http.get("/kernels")).json()
    assert model["id"] in [each["id"] for each in listed]
    assert (await ada.http.delete(f"/kernels/{model['id']}")).status_code == 204
    assert (await ada.http.delete(f"/kernels/{model['id']}")).status_code == 404
    assert (await ada.http.get(f"/kernels/{model['id']}")).status_code == 404


async def test_a_kernel_of_another_language_is_not_there(ada: Served) -> None:
    refused = await ada.http.post("/kernels", json={"name": "ir"})
    assert refused.status_code == 404
    assert refused.json()["code"] == "not_found" and "'ir'" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"nothing", 400),
        (b'{"name": 1}', 400),
        (b'"python3"', 400),
        (b'{"env": ' + b"[" * 40_000, 400),
        (b'{"env": ' + b"[" * 100_000, 413),
        (b'{"env": "' + b"x" * (2 << 20) + b'"}', 413),
        (b'{"name": "' + b"x" * 2000 + b'"}', 400),
    ],
)
async def test_a_body_that_is_no_wish_for_a_kernel_is_refused(
    ada: Served, body: bytes, status: int
) -> None:
    assert (await ada.http.post("/kernels", content=body)).status_code == status


async def test_what_a_client_says_of_its_own_machine_is_not_used(ada: Served) -> None:
    wish = {"name": "python3", "path": "../../etc", "env": {"KERNEL_SECRET": "x"}}
    name = (await ada.http.post("/kernels", json=wish)).json()["id"]
    async with talking(ada.url, name, ada.token) as talker:
        ran = await talker.run("import os; print(os.environ.get('KERNEL_SECRET'), os.getcwd())")
    assert ran.text == "None /workspace\n"


async def test_a_session_that_was_opened_another_way_is_a_kernel(
    ada: Served, bell: Divingbell
) -> None:
    session, _ = await bell.owned.open(Principal("ada", "", "http"), "analysis")
    await session.run("depth = 40")
    assert "analysis" in [each["id"] for each in (await ada.http.get("/kernels")).json()]
    async with talking(ada.url, "analysis", ada.token) as talker:
        assert (await talker.run("print(depth)")).text == "40\n"


async def test_nobody_reaches_a_kernel_of_another(ada: Served, bob: Served) -> None:
    name = await ada.kernel()
    assert name not in [each["id"] for each in (await bob.http.get("/kernels")).json()]
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/interrupt"),
        ("POST", "/restart"),
    ):
        theirs = await bob.http.request(method, f"/kernels/{name}{path}")
        nobodys = await bob.http.request(method, f"/kernels/{'0' * 36}{path}")
        assert theirs.status_code == nobodys.status_code == 404
    assert (await ada.http.get(f"/kernels/{name}")).status_code == 200


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc%2fpasswd", "%00", "%2e%2e", "a" * 2000, "mcp:0", "default", "%ff"]
)
async def test_a_name_that_leads_elsewhere_leads_nowhere(ada: Served, name: str) -> None:
    for method in ("GET", "DELETE"):
        assert (await ada.http.request(method, f"/kernels/{name}")).status_code == 404


@pytest.mark.parametrize("form", ["token {}", "Bearer {}", "bearer {}"])
async def test_a_token_is_taken_in_each_form_that_clients_send(ada: Served, form: str) -> None:
    headers = {"Authorization": form.format(ada.token)}
    assert (await ada.http.get("/kernels", headers=headers)).status_code == 200
    wrong = {"Authorization": form.format("x" * 20)}
    assert (await ada.http.get("/kernels", headers=wrong)).status_code == 401


async def test_a_token_in_the_address_is_taken(ada: Served) -> None:
    ada.http.headers.pop("Authorization")
    assert (await ada.http.get("/kernels")).status_code == 401
    assert (await ada.http.get("/kernels", params={"token": ada.token})).status_code == 200


async def test_a_notebook_is_opened_renamed_given_another_kernel_and_closed(ada: Served) -> None:
    wish = {"path": "dive.ipynb", "name": "dive", "type": "notebook", "kernel": {"name": "python3"}}
    made = await ada.http.post("/sessions", json=wish)
    assert made.status_code == 201
    model = made.json()
    assert (model["path"], model["type"]) == ("dive.ipynb", "notebook")
    address = f"/sessions/{model['id']}"
    assert (await ada.http.get(address)).json()["kernel"]["id"] == model["kernel"]["id"]
    assert model["id"] in [each["id"] for each in (await ada.http.get("/sessions")).json()]
    again = await ada.http.post("/sessions", json=wish | {"kernel": {"id": model["kernel"]["id"]}})
    assert again.json()["id"] == model["id"]
    other = await ada.kernel()
    changed = await ada.http.patch(address, json={"path": "b.ipynb", "kernel": {"id": other}})
    assert (changed.json()["path"], changed.json()["kernel"]["id"]) == ("b.ipynb", other)
    assert (await ada.http.delete(address)).status_code == 204
    assert (await ada.http.get(address)).status_code == 404
    assert (await ada.http.get(f"/kernels/{other}")).status_code == 404


async def test_nobody_reaches_a_notebook_or_takes_a_kernel_of_another(
    ada: Served, bob: Served
) -> None:
    made = (await ada.http.post("/sessions", json={"path": "dive.ipynb"})).json()
    assert (await bob.http.get("/sessions")).json() == []
    for method in ("GET", "PATCH", "DELETE"):
        answer = await bob.http.request(method, f"/sessions/{made['id']}", json={})
        assert answer.status_code == 404
    taken = await bob.http.post("/sessions", json={"kernel": {"id": made["kernel"]["id"]}})
    assert taken.status_code == 404
    assert (await ada.http.get(f"/sessions/{made['id']}")).status_code == 200


async def test_a_notebook_goes_with_its_kernel(ada: Served) -> None:
    made = (await ada.http.post("/sessions", json={"path": "dive.ipynb"})).json()
    await ada.http.delete(f"/kernels/{made['kernel']['id']}")
    assert made["id"] not in [each["id"] for each in (await ada.http.get("/sessions")).json()]
