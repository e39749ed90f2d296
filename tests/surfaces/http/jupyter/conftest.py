"""A server whose kernels are sessions of the tests' own Divingbell."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces import auth
from divingbell.surfaces.http import listening
from divingbell.surfaces.http.application import application
from divingbell.surfaces.http.listening import bound
from tests.surfaces.http.jupyter.talking import Talker, talking
from tests.waiting import PATIENCE

ADA, BOB = "the-token-of-ada-0001", "the-token-of-bob-0001"


class Served:
    """The server, as one of its users reaches it."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self.http = httpx2.AsyncClient(
            base_url=f"{url}/jupyter/api", headers={"Authorization": f"token {token}"}
        )

    async def kernel(self) -> str:
        made = await self.http.post("/kernels", json={"name": "python3"})
        assert made.status_code == 201, made.text
        name: str = made.json()["id"]
        return name


@contextlib.asynccontextmanager
async def serving(bell: Divingbell, tokens: auth.Tokens | None) -> AsyncIterator[str]:
    """Serve kernels at a free port."""
    listener = bound("127.0.0.1", 0)
    ready = asyncio.Event()
    task = asyncio.create_task(listening.serve(application(bell, tokens), listener, ready.set))
    await asyncio.wait_for(ready.wait(), PATIENCE)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    task.cancel()
    await asyncio.wait([task])
    await bell.owned.leave_all()


@pytest.fixture(scope="module")
async def server(bell: Divingbell) -> AsyncIterator[str]:
    tokens = auth.Tokens({"ada": auth.hash_of(ADA), "bob": auth.hash_of(BOB)})
    async with serving(bell, tokens) as url:
        yield url


@pytest.fixture
async def open_server(bell: Divingbell) -> AsyncIterator[str]:
    """One that asks for no token."""
    async with serving(bell, None) as url:
        yield url


@pytest.fixture
async def ada(server: str) -> AsyncIterator[Served]:
    served = Served(server, ADA)
    yield served
    await served.http.aclose()


@pytest.fixture
async def bob(server: str) -> AsyncIterator[Served]:
    served = Served(server, BOB)
    yield served
    await served.http.aclose()


@pytest.fixture
async def talker(ada: Served) -> AsyncIterator[Talker]:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        yield talker
    await ada.http.delete(f"/kernels/{name}")
