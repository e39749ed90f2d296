"""The page: one document, its scripts and styles, under a policy that lets nothing else in."""

import asyncio
import functools
import gzip
import secrets
from dataclasses import dataclass
from pathlib import Path

from starlette.types import Receive, Scope, Send

from divingbell.surfaces.http.answers import Answer
from divingbell.surfaces.http.problems import Refused

STATIC = Path(__file__).parent / "static"
"""Built from `web/` by Vite, and committed: who installs Divingbell needs no Node."""
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
NONCE = "%NONCE%"
# The editor makes styles of its own; the nonce is for these alone. `frame-src` also holds for
# where a frame goes by itself: without it an output could leave with `location` or a refresh.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'none'; "
    "base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types inert"
)
HEADERS = {
    "Connection-Allowlist": "(response-origin)",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
}
FOREVER = "public, max-age=31536000, immutable"
"""The name of an asset has the hash of what is in it."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, as it is and compressed."""

    plain: bytes
    compressed: bytes
    media_type: str


@functools.cache
def assets() -> dict[str, Asset]:
    """Return the files of the page by name: compressed once, not for each visitor."""
    found = {}
    for path in (STATIC / "assets").iterdir():
        plain = path.read_bytes()
        compressed = gzip.compress(plain, mtime=0)
        found[path.name] = Asset(plain, compressed, MEDIA_TYPES[path.suffix])
    return found


@functools.cache
def document() -> str:
    """Return the page, with a mark where the nonce belongs."""
    return (STATIC / "index.html").read_text("utf-8")


class Page:
    """Answers with the page. An application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        nonce = secrets.token_urlsafe(16)
        body = document().replace(NONCE, nonce).encode()
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        answer = Answer(body, 200, "text/html; charset=utf-8", HEADERS | policy)
        await answer(scope, receive, send)


class Assets:
    """Answers with the files of the page. An application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asset = (await asyncio.to_thread(assets)).get(scope["path_params"]["name"])
        if asset is None:
            raise Refused(404, "not_found", "the page has no such file: load it again")
        headers = HEADERS | {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
        body = asset.plain
        if _takes_gzip(scope):
            body = asset.compressed
            headers["Content-Encoding"] = "gzip"
        await Answer(body, 200, asset.media_type, headers)(scope, receive, send)


def _takes_gzip(scope: Scope) -> bool:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    return any(each.strip().startswith(b"gzip") for each in accepted.split(b","))
