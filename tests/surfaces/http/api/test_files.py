"""Files over HTTP: raw bytes both ways, and ranges of them."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from tests.surfaces.http.serving import ANNE, served

API = "/api/v1/sessions/files/files"


@pytest.fixture(scope="module", autouse=True)
async def opened(site: object) -> None:
    async with site.client() as client:  # type: ignore[attr-defined]
        assert (await client.post("/api/v1/sessions", json={"id": "files"})).status_code == 201


async def test_a_file_is_stored_read_listed_and_removed(anne: httpx2.AsyncClient) -> None:
    content = bytes(range(256)) * 3000
    stored = await anne.put(f"{API}/a/b%20c.bin", content=content)
    assert stored.status_code == 201 and stored.json() == {"path": "a/b c.bin", "size": 768_000}
    answer = await anne.get(f"{API}/a/b%20c.bin")
    assert answer.content == content and answer.headers["content-length"] == "768000"
    assert "attachment" in answer.headers["content-disposition"]
    listed = (await anne.get(API)).json()
    assert [(each["path"], each["size"]) for each in listed["items"]] == [("a/b c.bin", 768_000)]
    head = await anne.head(f"{API}/a/b%20c.bin")
    assert head.status_code == 200 and head.headers["accept-ranges"] == "bytes"
    assert (await anne.delete(f"{API}/a/b%20c.bin")).status_code == 204
    assert (await anne.get(f"{API}/a/b%20c.bin")).status_code == 404


@pytest.mark.parametrize(
    ("asked", "part", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-2", b"89", "bytes 8-9/10"),
        ("bytes=4-400", b"456789", "bytes 4-9/10"),
    ],
)
async def test_a_range_is_returned(
    anne: httpx2.AsyncClient, asked: str, part: bytes, told: str
) -> None:
    await anne.put(f"{API}/ten", content=b"0123456789")
    answer = await anne.get(f"{API}/ten", headers={"Range": asked})
    assert answer.status_code == 206 and answer.content == part
    assert answer.headers["content-range"] == told


async def test_a_range_that_is_not_there_is_refused(anne: httpx2.AsyncClient) -> None:
    await anne.put(f"{API}/ten", content=b"0123456789")
    answer = await anne.get(f"{API}/ten", headers={"Range": "bytes=10-"})
    assert answer.status_code == 416 and answer.headers["content-range"] == "bytes */10"
    for unknown in ("bytes=a-b", "lines=1-2", "bytes=-", "bytes=1-2,4-5"):
        answer = await anne.get(f"{API}/ten", headers={"Range": unknown})
        assert answer.status_code == 200 and answer.content == b"0123456789"


@pytest.mark.parametrize(
    "path", ["..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "a%00b", "x/../../y"]
)
async def test_no_path_leads_out_of_the_workspace(anne: httpx2.AsyncClient, path: str) -> None:
    for method in ("GET", "PUT", "DELETE", "HEAD"):
        answer = await anne.request(method, f"{API}/{path}")
        assert answer.status_code in (404, 422), (method, path)


async def test_what_does_not_fit_the_disk_is_refused(anne: httpx2.AsyncClient) -> None:
    given = {"id": "small", "limits": {"disk": "1MB"}}
    assert (await anne.post("/api/v1/sessions", json=given)).status_code == 201
    path = "/api/v1/sessions/small/files/large"
    answer = await anne.put(path, content=b"x" * (2 << 20))
    assert answer.status_code == 413

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b"x" * (1 << 16)

    answer = await anne.put(path, content=pieces())
    assert answer.status_code == 507 and answer.json()["code"] == "disk_full"
    assert (await anne.get("/api/v1/sessions/small/files")).json()["items"] == []


async def test_personal_data_in_files_takes_a_scope() -> None:
    plain, all_of_them = frozenset({"run", "read"}), frozenset(SCOPES)
    folder = "/api/v1/sessions/s/files"
    path = f"{folder}/ann@example-firm.com.txt"
    async with Divingbell(privacy="personal", pool=0) as bell:
        for scopes, status in ((plain, 403), (all_of_them, 200)):
            tokens = Tokens({"anne": hash_of(ANNE)}, scopes)
            async with served(bell, tokens) as site, site.client(ANNE) as anne:
                await anne.post("/api/v1/sessions", json={"id": "s"})
                await anne.put(path, content=b"ann@example-firm.com")
                listed = (await anne.get(folder)).json()["items"][0]["path"]
                assert ("ann@" in listed) == (status == 200)
                read = await anne.get(path)
                assert read.status_code == status
                assert (b"ann@" in read.content) == (status == 200)
