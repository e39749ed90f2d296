"""A disk that is full behind the server: nothing is half written, nothing is shown that should be
hidden, and who asks is told."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.errors import ConfigError
from divingbell.surfaces.auth import SCOPES, Tokens
from divingbell.surfaces.token_store import TokenStore
from tests.skills.samples import made
from tests.small_disk import AS_ROOT, filled, small_disk
from tests.surfaces.http.api.test_records import SAVING
from tests.surfaces.http.serving import served

pytestmark = AS_ROOT
API = "/api/v1"
ADDRESS = "ann@example-firm.com"


@dataclass
class Small:
    """A server whose folder for what lasts is on a small disk."""

    disk: Path
    store: TokenStore
    anne: httpx2.AsyncClient


@pytest.fixture
async def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Small]:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        monkeypatch.setenv("XDG_DATA_HOME", str(disk))
        store = TokenStore(disk / "tokens.json")
        token, _ = store.create("anne", frozenset(SCOPES))
        vault = {"store": f"sqlite:{disk / 'vault.db'}"}
        async with Divingbell(
            pool=0, preload=[], skills="on", privacy="personal", vault=vault
        ) as bell:
            for answer in (1, 2):
                code = f"def run():\n    return {answer}\n"
                await bell.skills.add(made(code=code), user="anne")
            tokens = Tokens({}, frozenset(SCOPES), store)
            async with served(bell, tokens) as site, site.client(token) as anne:
                yield Small(disk, store, anne)


async def test_tokens_that_are_there_hold_and_none_is_half_made_or_half_revoked(
    small: Small,
) -> None:
    kept = small.store.kept()
    with filled(small.disk):
        with pytest.raises(ConfigError, match="can't be written: No space left"):
            small.store.create("bert")
        assert small.store.kept() == kept
        assert (await small.anne.get(f"{API}/me")).status_code == 200
    small.store.revoke(kept[0].id)
    assert (await small.anne.get(f"{API}/me")).status_code == 401


async def test_skills_stay_as_they_are_and_who_saves_one_is_told(small: Small) -> None:
    before = (await small.anne.get(f"{API}/skills/top-customers")).json()
    where = f"{API}/sessions/one/execute"
    assert (await small.anne.post(where, json={"code": "1"})).json()["status"] == "ok"
    with filled(small.disk):
        saved = (await small.anne.post(where, json={"code": SAVING})).json()
        assert saved["status"] == "error" and "is full" in saved["failure"]["message"], saved
        back = {"version": 1}
        refused = await small.anne.post(f"{API}/skills/top-customers/rollback", json=back)
        assert refused.status_code in (422, 503, 507), refused.text
        assert str(small.disk) not in saved["failure"]["message"] + refused.text
        names = [each["name"] for each in (await small.anne.get(f"{API}/skills")).json()["items"]]
        assert names == ["top-customers"]
        assert (await small.anne.get(f"{API}/skills/top-customers")).json() == before
    saved = (await small.anne.post(where, json={"code": SAVING})).json()
    assert saved["status"] == "ok", saved


async def test_where_the_vault_can_keep_nothing_no_value_is_shown(small: Small) -> None:
    where = f"{API}/sessions/one/execute"
    with filled(small.disk):
        shown = await small.anne.post(where, json={"code": f"'{ADDRESS[:3]}' + '{ADDRESS[3:]}'"})
        assert ADDRESS not in shown.text and "Traceback" not in shown.text
        assert str(small.disk) not in shown.text
    again = await small.anne.post(where, json={"code": f"print('{ADDRESS}')"})
    assert again.status_code == 200 and ADDRESS not in again.text
    assert "[EMAIL_" in again.json()["output"], again.text
