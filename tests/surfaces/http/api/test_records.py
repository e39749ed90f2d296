"""Skills and the audit log over HTTP, with real ones in them."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import USUAL, Tokens, hash_of
from divingbell.surfaces.token_store import TokenStore
from tests.skills.samples import made
from tests.surfaces.http.serving import ANNE, BERT, Site, served
from tests.waiting import until

API = "/api/v1"
SAVING = '''
def depth():
    """Says how deep it is.

    >>> depth()
    12
    """
    return 12

save_skill("depth", depth, "Says how deep it is")
'''


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    return TokenStore(tmp_path_factory.mktemp("tokens") / "tokens.json")


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory, store: TokenStore) -> AsyncIterator[Site]:
    folder: Path = tmp_path_factory.mktemp("records")
    log = {"folder": str(folder / "log"), "heads": str(folder / "heads")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        async with Divingbell(pool=0, preload=[], skills="on", audit="on", audit_log=log) as bell:
            for answer in (1, 2):
                code = f"def run():\n    return {answer}\n"
                await bell.skills.add(made(code=code), user="anne")
            hashes = {"anne": hash_of(ANNE), "bert": hash_of(BERT)}
            async with served(bell, Tokens(hashes, USUAL, store)) as site:
                yield site


async def test_a_skill_is_saved_listed_rolled_back_and_deleted(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient
) -> None:
    saved = await anne.post(f"{API}/sessions/one/execute", json={"code": SAVING})
    assert saved.json()["status"] == "ok", saved.text
    listed = (await anne.get(f"{API}/skills")).json()
    assert [(each["name"], each["version"]) for each in listed["items"]] == [
        ("depth", 1),
        ("top-customers", 2),
    ]
    first = (await anne.get(f"{API}/skills", params={"limit": "1"})).json()
    assert [each["name"] for each in first["items"]] == ["depth"] and first["next"]
    rest = await anne.get(f"{API}/skills", params={"limit": "1", "cursor": first["next"]})
    assert [each["name"] for each in rest.json()["items"]] == ["top-customers"]
    assert (await bert.get(f"{API}/skills")).json()["items"] == []

    whole = (await anne.get(f"{API}/skills/top-customers")).json()
    assert "return 2" in whole["code"] and len(whole["versions"]) == 2
    back = await anne.post(f"{API}/skills/top-customers/rollback", json={"version": 1})
    assert back.status_code == 200 and "return 1" in back.json()["code"]
    assert back.json()["skill"]["version"] == 1
    none = await anne.post(f"{API}/skills/top-customers/rollback", json={"version": 9})
    assert none.status_code in (404, 422), none.text
    run = {"code": "from skills import top_customers\ntop_customers.run()"}
    assert (await anne.post(f"{API}/sessions/two/execute", json=run)).json()["value"] == 1

    assert (await bert.delete(f"{API}/skills/depth")).status_code == 404
    assert (await anne.delete(f"{API}/skills/depth")).status_code == 204
    assert (await anne.get(f"{API}/skills/depth")).status_code == 404
    listed = (await anne.get(f"{API}/skills")).json()
    assert [each["name"] for each in listed["items"]] == ["top-customers"]


async def test_the_audit_log_tells_of_ones_own_page_by_page_and_of_all_to_admins(
    site: Site, store: TokenStore, anne: httpx2.AsyncClient, bert: httpx2.AsyncClient
) -> None:
    for client, name in ((anne, "annes"), (anne, "annes"), (bert, "berts")):
        answer = await client.post(f"{API}/sessions/{name}/execute", json={"code": "1 + 1"})
        assert answer.status_code == 200
    ended = {"kind": "execution.ended"}

    async def are_written() -> bool:
        # Records have sessions by what tells them apart, which no other one ever had.
        newest = {"kind": "execution.ended", "limit": "2"}
        found = (await anne.get(f"{API}/audit", params=newest)).json()["items"]
        ended["session"] = found[0]["session"] if found else "none"
        mine = (await anne.get(f"{API}/audit", params=ended)).json()["items"]
        return len(found) == 2 and found == mine

    await until(are_written, "the log has both")
    mine = (await anne.get(f"{API}/audit", params={"limit": "200"})).json()
    assert {each["user"] for each in mine["items"] if "user" in each} == {"anne"}
    assert mine["is_whole"] and mine["next"] is None
    moments = [each["at"] for each in mine["items"]]
    assert moments == sorted(moments, reverse=True)

    first = (await anne.get(f"{API}/audit", params=ended | {"limit": "1"})).json()
    second = await anne.get(f"{API}/audit", params=ended | {"limit": "1", "cursor": first["next"]})
    assert first["items"] != second.json()["items"] and second.json()["next"] is None
    assert {each["status"] for each in first["items"]} == {"ok"}
    since = {"since": first["items"][0]["at"], "kind": "execution.ended"}
    assert len((await anne.get(f"{API}/audit", params=since)).json()["items"]) == 1

    assert (await anne.get(f"{API}/audit", params={"user": "bert"})).status_code == 403
    token, _ = store.create("carl", frozenset({"read", "admin"}))
    async with site.client(token) as admin:
        everybody = (await admin.get(f"{API}/audit", params={"limit": "200"})).json()["items"]
        assert {"anne", "bert"} <= {each.get("user") for each in everybody}
        berts = (await admin.get(f"{API}/audit", params={"user": "bert"})).json()["items"]
        assert berts and {each["user"] for each in berts} == {"bert"}
