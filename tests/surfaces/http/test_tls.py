"""TLS: a certificate that is given, its successor, and those who never agree."""

import asyncio
import contextlib
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import trustme
import websockets
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from divingbell import Divingbell
from divingbell.errors import ConfigError
from divingbell.surfaces.http import connections, listening, tls
from divingbell.surfaces.http.application import Application, application
from divingbell.surfaces.http.certificate import Certificate
from divingbell.surfaces.http.jupyter.framing import V1 as PROTOCOL
from tests.surfaces.http.serving import ANNE, known
from tests.waiting import PATIENCE, until

API = "/api/v1"


class Files:
    """A certificate and its key in a folder, as somebody puts them there."""

    def __init__(self, folder: Path) -> None:
        self.chain, self.key = folder / "chain.pem", folder / "key.pem"
        self.authority = trustme.CA()
        self.put(self.authority)

    def put(self, authority: trustme.CA) -> None:
        issued = authority.issue_cert("localhost")
        self.chain.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())

    def trust(self, authority: trustme.CA | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        (authority or self.authority).configure_trust(context)
        return context


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@contextlib.asynccontextmanager
async def served(
    bell: Divingbell, certificate: Certificate
) -> AsyncIterator[tuple[Application, int]]:
    app, ready = application(bell, known()), asyncio.Event()
    with listening.bound("127.0.0.1", 0) as listener:
        answering = listening.serve(app, listener, ready.set, certificate)
        serving = asyncio.create_task(answering)
        await ready.wait()
        try:
            yield app, listener.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.wait([serving])


def client(port: int, trust: ssl.SSLContext) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {ANNE}"}
    return httpx2.AsyncClient(
        base_url=f"https://localhost:{port}", headers=headers, timeout=PATIENCE, verify=trust
    )


async def test_cells_files_and_sockets_work_over_it(bell: Divingbell, files: Files) -> None:
    trust, large = files.trust(), bytes(3 << 20)
    async with (
        served(bell, Certificate(files.chain, files.key)) as (_, port),
        client(port, trust) as anne,
    ):
        ran = await anne.post(f"{API}/sessions/safe/execute", json={"code": "6 * 7"})
        assert ran.json()["value"] == 42
        path = f"{API}/sessions/safe/files/large.bin"
        assert (await anne.put(path, content=large)).is_success
        assert (await anne.get(path)).content == large
        kernel = (await anne.post("/jupyter/api/kernels", json={"name": "python3"})).json()["id"]
        address = f"wss://localhost:{port}/jupyter/api/kernels/{kernel}/channels?token={ANNE}"
        async with websockets.connect(address, ssl=trust, subprotocols=[PROTOCOL]) as socket:
            assert socket.subprotocol == PROTOCOL
        assert (await anne.delete(f"/jupyter/api/kernels/{kernel}")).is_success


async def test_a_renewed_certificate_is_taken_up_and_a_wrong_one_is_not(
    bell: Divingbell, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, successor = Certificate(files.chain, files.key), trustme.CA()
    async with served(bell, certificate) as (_, port):
        async with client(port, files.trust()) as anne:
            assert (await anne.get("/healthz")).status_code == 200
        files.put(successor)
        certificate.renew()
        files.key.write_text("no key at all")
        certificate.renew()
        assert "clients are shown the certificate from before" in caplog.text
        async with client(port, files.trust(successor)) as anne:
            assert (await anne.get("/healthz")).status_code == 200
        async with client(port, files.trust()) as anne:
            with pytest.raises(httpx2.ConnectError):
                await anne.get("/healthz")


async def test_files_that_change_are_looked_at(
    bell: Divingbell, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.surfaces.http.certificate.LOOK_EVERY", 0.01)
    certificate, successor = Certificate(files.chain, files.key), trustme.CA()
    trust = files.trust(successor)
    async with served(bell, certificate) as (_, port):
        files.put(successor)

        async def is_taken_up() -> bool:
            try:
                async with client(port, trust) as anne:
                    return (await anne.get("/healthz")).status_code == 200
            except httpx2.ConnectError:
                return False

        await until(is_taken_up, "the new certificate is shown")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"])
async def test_who_never_agrees_is_not_waited_for(
    bell: Divingbell, files: Files, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(tls, "HEAD_TIMEOUT", 0.2)
    async with served(bell, Certificate(files.chain, files.key)) as (app, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                await reader.read()
        writer.close()
        await until(lambda: len(app.door.connections) == 0, "it is counted no more")


async def test_those_who_have_not_agreed_are_few(
    bell: Divingbell, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_OF_PEER", 8)
    async with served(bell, Certificate(files.chain, files.key)) as (app, port):
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        await until(lambda: len(app.door.connections) == 8, "the oldest ones are closed")
        async with client(port, files.trust()) as anne:
            assert (await anne.get("/healthz")).status_code == 200
        for _, writer in opened:
            writer.close()


async def test_agreeing_is_charged_to_strangers(
    bell: Divingbell, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged = []
    async with served(bell, Certificate(files.chain, files.key)) as (app, port):
        account = app.door.connections.host_time
        monkeypatch.setattr(account, "charge", lambda seconds: charged.append(seconds) or 0.0)
        async with client(port, files.trust()) as anne:
            await anne.get("/healthz")
    assert len(charged) > 1 and all(seconds > 0 for seconds in charged)


def test_what_is_no_pair_is_refused_at_the_start(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for chain, key, words in (
        (files.chain, Files(other).key, "no certificate with its private key"),
        (files.chain, None, "no certificate with its private key"),
        (tmp_path / "none.pem", None, "none.pem can't be read: No such file"),
    ):
        with pytest.raises(ConfigError, match=words):
            Certificate(chain, key)


def test_a_key_with_a_password_is_not_asked_for(files: Files) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password")
    )
    files.key.write_bytes(locked)
    with pytest.raises(ConfigError, match="has a password"):
        Certificate(files.chain, files.key)


def test_a_key_alone_is_refused(files: Files) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "divingbell", "serve", "--http", "--tls-key", files.key],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode != 0 and "give --tls-cert, too" in done.stderr
