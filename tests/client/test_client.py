"""A Divingbell elsewhere, by the library's own words."""

import asyncio
import datetime
import socket
from decimal import Decimal

import pytest

from divingbell import client
from divingbell.app import Divingbell
from divingbell.errors import (
    ConfigError,
    FileMissing,
    FileTooLarge,
    InvalidInput,
    ServiceRefused,
    ServiceUnreachable,
    SessionClosed,
)
from divingbell.models import Limits
from tests.surfaces.http.serving import ANNE, BERT, Site
from tests.waiting import PATIENCE


async def test_a_result_is_the_one_that_the_library_returns(
    bell: Divingbell, service: client.Divingbell
) -> None:
    code = "import datetime\nprint('hello')\n{'day': datetime.date(2026, 11, 18), 'set': {1, 2}}"
    async with service.session() as there, bell.session() as here:
        far, near = await there.run(code), await here.run(code)
    assert far.value == near.value == {"day": datetime.date(2026, 11, 18), "set": {1, 2}}
    assert (far.status, far.text, far.outputs) == (near.status, near.text, near.outputs)
    assert (far.cell, far.state, far.value_kind) == (near.cell, near.state, near.value_kind)
    assert far.usage.wall_ms > 0


async def test_a_failure_of_the_code_is_a_result(service: client.Divingbell) -> None:
    async with service.session() as session:
        result = await session.run("1/0")
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "ZeroDivisionError"
    assert "1/0" in result.error.traceback


async def test_images_come_as_bytes(service: client.Divingbell) -> None:
    result = await service.execute("import matplotlib.pyplot as plt; plt.plot([1]); plt.show()")
    images = [output.data for output in result.outputs if output.type == "image/png"]
    assert [image[:4] for image in images] == [b"\x89PNG"]


async def test_events_come_as_those_of_the_library(
    bell: Divingbell, service: client.Divingbell
) -> None:
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n'last'"
    async with service.session() as there, bell.session() as here:
        far = [event async for event in there.stream(code)]
        near = [event async for event in here.stream(code)]
    assert [(event.type, event.text, event.outputs, event.cell) for event in far] == [
        (event.type, event.text, event.outputs, event.cell) for event in near
    ]
    assert far[-1].result is not None
    assert far[-1].result.value == "last"


async def test_leaving_a_stream_interrupts_the_cell(service: client.Divingbell) -> None:
    async with service.session() as session:
        events = session.stream("print('begun', flush=True)\nwhile True: pass", timeout=PATIENCE)
        async for event in events:
            assert event.text == "begun\n"
            break
        await events.aclose()
        assert (await session.run("'goes on'")).value == "goes on"


async def test_a_cell_can_be_interrupted(service: client.Divingbell) -> None:
    async with service.session() as session:
        running = asyncio.create_task(session.run("while True: pass", timeout=PATIENCE))
        while not await session.interrupt():
            pass  # it has not begun yet
        assert (await running).status == "cancelled"


async def test_cancelling_a_run_interrupts_the_cell(site: Site, service: client.Divingbell) -> None:
    async with service.session() as session:
        code = "open('begun', 'w').close()\nwhile True: pass"
        running = asyncio.create_task(session.run(code, timeout=PATIENCE))
        while not await session.files.list():
            pass  # it has not begun yet
        running.cancel()
        assert (await session.run("'goes on'")).value == "goes on"


async def test_values_go_in_exactly_as_they_are(service: client.Divingbell) -> None:
    given = {"price": Decimal("1.10"), "days": {datetime.date(2026, 1, 2)}}
    async with service.session() as session:
        assert (await session.run("[price, days]", context=given)).value == list(given.values())
        with pytest.raises(InvalidInput, match="thing"):
            await session.run("1", context={"thing": object()})


async def test_a_session_of_a_name_is_joined_and_outlives_who_joined(
    service: client.Divingbell,
) -> None:
    async with service.session("shared", labels={"team": "sea"}, timeout=7) as first:
        await first.run("x = 41")
        async with service.session("shared") as second:
            assert (await second.run("x + 1")).value == 42
            assert second.labels == {"team": "sea"}
            assert second.limits == Limits(timeout=7)
        assert (await first.run("x")).value == 41
        assert [each.id for each in await service.sessions()] == ["shared"]
    assert await service.get("shared") is None
    with pytest.raises(SessionClosed):
        await first.variables()


async def test_state_can_be_looked_at_and_forgotten(service: client.Divingbell) -> None:
    async with service.session() as session:
        await session.run("depth = [1, 2, 3]")
        assert [(each.name, each.length) for each in await session.variables()] == [("depth", 3)]
        assert "depth" in [each.text for each in await session.complete("dep", 3)]
        await session.reset()
        assert await session.variables() == []


async def test_files_go_in_and_out(service: client.Divingbell) -> None:
    async with service.session() as session:
        assert await session.files.put("a b/ü.txt", "grün") == 5
        await session.files.put("/workspace/large", (bytes(1 << 16) for _ in range(64)))
        assert await session.files.get("/workspace/a b/ü.txt") == "grün".encode()
        assert (await session.files.stat("large")).size == 4 << 20
        assert [file.path for file in await session.files.list()] == ["a b/ü.txt", "large"]
        with pytest.raises(FileTooLarge):
            await session.files.get("large", most=1000)
        await session.files.remove("large")
        with pytest.raises(FileMissing):
            await session.files.get("large")
        with pytest.raises(FileMissing):
            await session.files.stat("large")


async def test_nobody_reaches_a_session_of_another(site: Site) -> None:
    async with (
        client.Divingbell(site.url, ANNE) as anne,
        client.Divingbell(site.url, BERT) as bert,
        anne.session("mine") as session,
    ):
        await session.run("secret = 1")
        assert await bert.get("mine") is None
        assert await bert.sessions() == []
        async with bert.session("mine") as other:
            assert (await other.run("'secret' in globals()")).value is False


async def test_wrong_ways_in_are_told_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIVINGBELL_URL", raising=False)
    with pytest.raises(ConfigError, match="DIVINGBELL_URL"):
        client.Divingbell()
    with pytest.raises(ServiceRefused, match="401"):
        async with client.Divingbell(site.url, "no-token-that-is-known"):
            pass
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ServiceUnreachable, match="divingbell serve --http"):
            async with client.Divingbell(nobody, ANNE):
                pass


async def test_address_and_token_come_from_the_environment(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIVINGBELL_URL", site.url + "/")
    monkeypatch.setenv("DIVINGBELL_TOKEN", ANNE)
    async with client.Divingbell() as service:
        assert (await service.execute("1+1")).value == 2
