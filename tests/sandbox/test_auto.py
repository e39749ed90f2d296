"""backend = "auto"."""

import pytest

from divingbell import Divingbell, SandboxUnavailable
from divingbell.models import Limits
from divingbell.sandbox.auto import AutoBackend
from divingbell.sandbox.base import Backend, Sandbox
from divingbell.settings.config import Settings


class Refusing(Backend):
    """A wall that this machine can't have."""

    stopped = 0

    async def start(self) -> None:
        raise SandboxUnavailable("not here")

    async def create(self, limits: Limits) -> Sandbox:
        raise AssertionError

    async def stop(self) -> None:
        Refusing.stopped += 1


async def test_where_nothing_works_each_reason_is_said() -> None:
    settings = Settings(backend="auto", backend_minimum="local")
    backend = AutoBackend(settings, lambda row: Refusing())
    with pytest.raises(SandboxUnavailable) as caught:
        await backend.start()
    for wall in ("gvisor", "docker-runsc", "local"):
        assert f"{wall}: not here" in str(caught.value)
    assert "docker: not here" not in str(caught.value)
    assert Refusing.stopped == 3


async def test_the_first_that_works_is_taken_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    said: list[str] = []
    order = ["docker", "local"]
    async with Divingbell(
        backend="auto", backend_order=order, pool=0, progress=said.append
    ) as bell:
        assert "backend: local" in said
        async with bell.session() as session:
            assert session.isolation.backend == "local"
            assert (await session.run("1 + 1")).value == 2
