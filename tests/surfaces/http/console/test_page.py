"""The page and its files: a strict policy, compressed, and kept by browsers."""

import gzip

import httpx2
import pytest

from divingbell.surfaces.http.console.page import STATIC, assets


async def test_the_page_lets_in_nothing_but_its_own_files(stranger: httpx2.AsyncClient) -> None:
    first, second = await stranger.get("/"), await stranger.get("/")
    policy = first.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "frame-src 'self'", "base-uri 'none'"):
        assert rule in policy.split("; ")
    assert "unsafe" not in policy
    assert policy != second.headers["content-security-policy"]  # each page has a nonce of its own
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert f'nonce="{nonce}"' in first.text


async def test_files_of_the_page_are_compressed_and_kept(stranger: httpx2.AsyncClient) -> None:
    for name, asset in assets().items():
        answer = await stranger.get(f"/assets/{name}", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert "immutable" in answer.headers["cache-control"]
        assert answer.content == asset.plain == gzip.decompress(asset.compressed)
    plain = await stranger.get(f"/assets/{name}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == asset.plain


@pytest.mark.parametrize("name", ["none.js", "..%2findex.html", "%2e%2e%2fpage.py", "a%00b"])
async def test_other_files_are_not_there(stranger: httpx2.AsyncClient, name: str) -> None:
    assert (await stranger.get(f"/assets/{name}")).status_code in (400, 404)


def test_the_page_names_no_address_of_others() -> None:
    assert "http" not in (STATIC / "index.html").read_text("utf-8")
