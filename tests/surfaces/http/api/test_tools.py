"""Servers and tools over HTTP, and what is told of tokens, audit and skills."""

import httpx2

from tests.surfaces.http.api.test_approvals import API, site

__all__ = ["site"]


async def test_tools_are_searched_and_described(anne: httpx2.AsyncClient) -> None:
    servers = (await anne.get(f"{API}/mcp/servers")).json()["items"]
    assert [each["name"] for each in servers] == ["shop"]
    part = (await anne.get(f"{API}/mcp/servers", params={"limit": "1"})).json()
    assert part == {"items": servers, "next": None}
    none = await anne.get(f"{API}/mcp/servers", params={"cursor": "shed"})
    assert none.status_code == 409 and none.json()["code"] == "cursor_gone"
    params = {"query": "complain", "detail_level": "name_only", "limit": "3"}
    found = (await anne.get(f"{API}/mcp/tools/search", params=params)).json()
    assert found["items"][0]["name"] == "shop.complain" and found["total"] >= 1
    told = (await anne.get(f"{API}/mcp/tools/shop/complain")).json()
    assert told["name"] == "shop.complain"
    assert (await anne.get(f"{API}/mcp/tools/shop/nothing")).status_code == 404
    wrong = await anne.get(f"{API}/mcp/tools/search", params={"detail_level": "all"})
    assert wrong.status_code == 400


async def test_sums_are_of_the_user_alone(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient
) -> None:
    told = (await bert.get(f"{API}/ledger", params={"days": "2"})).json()
    assert told["total"]["executions"] == 0 and told["by_day"] == {}
    assert (await anne.get(f"{API}/stats")).json()["days"] == 30
    assert (await anne.get(f"{API}/stats", params={"days": "0"})).status_code == 400


async def test_what_is_off_says_so(anne: httpx2.AsyncClient) -> None:
    assert (await anne.get(f"{API}/audit")).status_code == 404
    assert (await anne.get(f"{API}/skills")).json() == {"items": [], "next": None}
    assert (await anne.get(f"{API}/skills/nothing")).status_code == 404
    told = (await anne.get(f"{API}/me")).json()
    assert told["user"] == "anne" and told["scopes"] == ["approve", "read", "run"]


async def test_metrics_take_their_scope(anne: httpx2.AsyncClient) -> None:
    assert (await anne.get("/metrics")).status_code == 403
    assert (await anne.get("/healthz")).json() == {"status": "ok"}
    assert (await anne.get("/readyz")).json() == {"status": "ready"}
