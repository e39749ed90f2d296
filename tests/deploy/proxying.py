"""A real Caddy with a file of deploy/, before servers of ours."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests import real_servers
from tests.waiting import until

CADDY = Path(__file__).parents[2] / "deploy" / "caddy"
NAME = "bell.test"
# What a test may not do: be the machine's authority, ask one of the internet, use its ports.
OWN = (
    "{\n\tskip_install_trust\n\tlocal_certs\n\tadmin off\n\tauto_https disable_redirects\n"
    "\tstorage file_system STORAGE\n}\n"
)
PATIENCE = 60.0


@dataclass(frozen=True)
class Proxy:
    """A proxy that ends TLS, by the name that clients use."""

    port: int
    authority: Path

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def client(self, address: str = "127.0.0.1", **headers: str) -> httpx2.AsyncClient:
        """A client at an address of this machine. Nobody knows the name: it is given beside it."""
        transport = httpx2.AsyncHTTPTransport(verify=self.trust, local_address=address)
        return httpx2.AsyncClient(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": f"{NAME}:{self.port}", **headers},
            transport=_Named(transport),
            timeout=PATIENCE,
        )


class _Named(httpx2.AsyncBaseTransport):
    """Says the name in the handshake of TLS, as a browser does."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions["sni_hostname"] = NAME
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextlib.asynccontextmanager
async def proxy(file: str, folder: Path, **variables: str) -> AsyncIterator[Proxy]:
    """Run Caddy with a file as it is, but for what a test may not do."""
    program = real_servers.need_program("caddy")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, storage = folder / "Caddyfile", folder / "caddy"
    config.write_text(OWN.replace("STORAGE", str(storage)) + (CADDY / file).read_text())
    environment = os.environ | {
        "DIVINGBELL_NAME": f"https://{NAME}:{port}",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "HOME": str(folder),
        **variables,
    }
    with (folder / "caddy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, "run", "--config", str(config), "--adapter", "caddyfile",
            env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    found = Proxy(port, storage / "pki" / "authorities" / "local" / "root.crt")
    try:

        async def answers() -> bool:
            assert process.returncode is None, (folder / "caddy.log").read_text()
            if not found.authority.exists():
                return False
            try:
                async with found.client() as client:
                    return (await client.get("/healthz")).status_code == 200
            except (httpx2.TransportError, OSError):
                return False

        await until(answers, "the proxy answers")
        yield found
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
