"""Servers and tools over HTTP, and what is told of tokens, audit and skills."""

from pathlib import Path

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from tests import real_servers
from tests.surfaces.http.api.test_approvals import API, site
from tests.surfaces.http.serving import ANNE, BERT, served
from tests.waiting import until

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


async def test_sums_are_of_a_number_of_days(anne: httpx2.AsyncClient) -> None:
    assert (await anne.get(f"{API}/stats")).json()["days"] == 30
    assert (await anne.get(f"{API}/stats", params={"days": "0"})).status_code == 400


async def test_users_whose_names_are_addresses_have_their_own_sums_and_no_file_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    users = {"ann@example.org": ANNE, "bea@example.org": BERT}
    tokens = Tokens({user: hash_of(token) for user, token in users.items()}, frozenset(SCOPES))

    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    async with (
        Divingbell(pool=0, preload=[], tools=[double]) as bell,
        served(bell, tokens) as site,
        site.client(ANNE) as ann,
        site.client(BERT) as bea,
    ):
        code = {"code": "servers.host.double(21)"}
        for client in (ann, ann, bea):
            ran = await client.post(f"{API}/sessions/one/execute", json=code)
            assert ran.json()["value"] == 42, ran.text

        async def are_there() -> bool:
            told = [(await each.get(f"{API}/ledger")).json() for each in (ann, bea)]
            return [each["total"]["executions"] for each in told] == [2, 1]

        await until(are_there, "they are written")
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert tmp_path / "divingbell" / "ledger.db" in written
    assert [path for path, data in written.items() if b"example.org" in data] == []


async def test_sums_are_those_of_the_ledgers_of_what_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    command, arguments = real_servers.fixture("workshop")
    code = "from servers.shop import echo, count\necho('a' * 400), echo('b'), count(to=1)"
    async with (
        Divingbell(
            pool=0, preload=[], servers={"shop": {"command": command, "args": arguments}}
        ) as bell,
        served(bell) as site,
        site.client() as anne,
        site.client(BERT) as bert,
    ):
        where = f"{API}/sessions/sums/execute"
        ran = [(await anne.post(where, json={"code": each})).json() for each in (code, "1 + 1")]

        async def are_written() -> bool:
            found = (await anne.get(f"{API}/ledger")).json()
            return bool(found["total"]["executions"] == 2)

        await until(are_written, "both are added up")
        told = (await anne.get(f"{API}/stats", params={"days": "1"})).json()
        ledger = (await anne.get(f"{API}/ledger", params={"days": "1"})).json()
        berts = (await bert.get(f"{API}/stats")).json()
    assert berts["total"]["executions"] == 0 and berts["by_day"] == {} and berts["tools"] == []
    total = told["total"]
    for name in ("code_tokens", "output_tokens", "direct_call_tokens", "read", "direct", "calls"):
        assert total[name] == sum(each["ledger"][name] for each in ran), name
    assert total["calls"] == 3 and total["saved"] == total["direct"] - total["read"]
    assert {name: each for name, each in told.items() if name in ledger} == ledger
    assert list(told["by_day"].values()) == [total]
    tools = {each["name"]: each for each in told["tools"]}
    assert {name: each["calls"] for name, each in tools.items()} == {
        "shop.echo": 2,
        "shop.count": 1,
    }
    assert tools["shop.echo"]["tokens"] > tools["shop.count"]["tokens"] > 0
    tokens = sum(each["tokens"] for each in tools.values())
    assert told["servers"] == [{"name": "shop", "calls": 3, "tokens": tokens}]
    assert tokens == total["direct_call_tokens"]


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
