"""deploy/docker and deploy/caddy: what sessions need is in them, and a proxy passes TLS on."""

import asyncio
import os
import re
import socket
import ssl
from pathlib import Path

import yaml

from divingbell.host import descriptors
from divingbell.settings.config import PREFIX, Settings, load
from tests import real_servers

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE = 60.0


def test_the_compose_file_has_what_sessions_need() -> None:
    found = yaml.safe_load((DEPLOY / "docker" / "compose.yml").read_text())
    service = found["services"]["divingbell"]
    assert service["security_opt"] == ["seccomp=unconfined", "systempaths=unconfined"]
    usual = Settings()
    assert service["ulimits"]["nofile"] >= descriptors.needed(usual.max_sessions + usual.pool)
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_dockerfile_is_the_one_of_the_docs() -> None:
    page = (DEPLOY.parent / "docs" / "platforms.md").read_text()
    [shown] = re.findall(r"```dockerfile\n(.*?)```", page, re.DOTALL)
    assert (DEPLOY / "docker" / "Dockerfile").read_text() == shown


def test_the_example_of_an_environment_can_be_used() -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    settings = load(environment=pairs)
    assert settings.metrics == "on" and settings.token_price == 3
    assert all(name.startswith((PREFIX, "OTEL_")) for name in pairs)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    await writer.drain()
    writer.close()


async def _asked(port: int) -> bytes:
    """What is answered over TLS; nothing while the proxy starts."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own, for the test
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
    except OSError:
        return b""
    writer.write(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
    found = await reader.read()
    writer.close()
    return found


async def test_a_proxy_ends_tls_and_passes_requests_on(tmp_path: Path) -> None:
    real_servers.need_program("caddy")
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # The file as it is, but for what a test may not do: be the machine's authority, use its ports.
    config = tmp_path / "Caddyfile"
    own = "{\n\tskip_install_trust\n\tadmin off\n\tauto_https disable_redirects\n}\n"
    config.write_text(own + (DEPLOY / "caddy" / "Caddyfile").read_text())
    behind = server.sockets[0].getsockname()[1]
    environment = os.environ | {
        "DIVINGBELL_NAME": f"https://localhost:{port}",
        "DIVINGBELL_ADDRESS": f"127.0.0.1:{behind}",
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "HOME": str(tmp_path),
    }
    with (tmp_path / "log").open("wb") as log:
        proxy = await asyncio.create_subprocess_exec(
            "caddy", "run", "--config", str(config), "--adapter", "caddyfile",
            env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := await _asked(port)):
                assert proxy.returncode is None, (tmp_path / "log").read_text()
        assert found.startswith(b"HTTP/1.1 200") and found.endswith(b"hello")
    finally:
        proxy.terminate()
        async with asyncio.timeout(PATIENCE):
            await proxy.wait()
        server.close()
        await server.wait_closed()
