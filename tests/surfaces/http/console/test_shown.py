"""What pages show is so: real values, figures of sessions, tools, savings, records; on a phone."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.agent.model import ModelRequest
from divingbell.agent.scripted import Says
from divingbell.surfaces.auth import USUAL, Tokens, hash_of
from tests.surfaces.http.console.browsing import Console
from tests.surfaces.http.console.test_console import complaints_of_axe
from tests.surfaces.http.console.test_pages import say
from tests.surfaces.http.serving import ANNE, Site, Talking, known, served
from tests.waiting import until

API = "/api/v1"
ADDRESS = "ann@example-firm.com"
CODE = "print('write to ' + '@'.join(['ann', 'example-firm.com']))"
REAL = "Show real values where the model reads tokens"


@pytest.fixture
async def anne(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with site.client() as client:
        yield client


def _repeats(request: ModelRequest) -> Says:
    """What a model says that has read an address."""
    token = re.search(r"\[EMAIL_\d+\]", str(request.entries))
    assert token is not None and ADDRESS not in str(request.entries)
    return Says(f"Write to **{token[0]}** today.")


@pytest.mark.parametrize("may_see", [True, False], ids=["with reveal", "without"])
async def test_real_values_are_marked_for_those_who_may_see_them(
    browser: Any, script: Talking, axe: str, may_see: bool
) -> None:
    script.lines[:] = [Says("I look.", CODE), _repeats]
    tokens = known() if may_see else Tokens({"anne": hash_of(ANNE)}, USUAL)
    context = await browser.new_context(reduced_motion="reduce")
    async with (
        Divingbell(pool=0, preload=[], privacy="personal", agent={"mode": "code"}) as bell,
        served(bell, tokens, script.made) as site,
    ):
        console = await Console.opened(context, site)
        page = console.page
        await console.show("chat")
        await say(page, "Whom do I write to?")
        log = page.get_by_role("log", name="Conversation")
        await log.locator("strong", has_text="[EMAIL_").wait_for()
        assert await page.get_by_label(REAL).count() == may_see
        if may_see:
            await page.get_by_label(REAL).check()
            await log.locator("strong mark", has_text=ADDRESS).wait_for()
            # In what the code has shown as well.
            await log.locator(".cell-output mark", has_text=ADDRESS).wait_for()
            title = await log.locator("strong mark").get_attribute("title")
            assert re.fullmatch(r"The model reads \[EMAIL_\d+\]", title)
            await page.evaluate(axe)
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await complaints_of_axe(console) == [], scheme
            await page.get_by_label(REAL).uncheck()
            await log.locator("mark", has_text=ADDRESS).first.wait_for(state="detached")
        assert "[EMAIL_" in await log.locator("strong").inner_text()
        assert ADDRESS not in await log.inner_text()
        assert console.complaints == []
        await context.close()


async def test_what_a_session_uses_is_shown_while_it_runs(console: Console) -> None:
    page = console.page
    await console.begin("meters")
    cell = await console.write("kept = bytearray(b'x') * (96 << 20)\nwhile True: pass")
    await cell.locator(".cm-content").press("Control+Enter")
    await console.show("sessions")
    title = page.get_by_role("button", name="meters", exact=True)
    card = page.locator(".session-card", has=title)
    processor, memory = (card.locator(".meters > div").nth(n).locator("strong") for n in (0, 1))

    async def are_live() -> bool:
        used = await processor.inner_text(), await memory.inner_text()
        percent, size = (float(re.sub(r"[^\d.]", "", each)) for each in used)
        return percent > 0 and used[1].endswith("MB") and size > 90

    await until(are_live, "it computes, and holds what it has made")
    assert await card.get_by_role("img", name="CPU over the last minutes").count() == 1
    await card.get_by_role("button", name="Stop").click()
    await card.locator(".state.idle").wait_for()


async def test_tools_are_searched_as_a_model_sees_them(console: Console) -> None:
    page = console.page
    await console.show("tools")
    await page.locator(".server-list").get_by_text("shop", exact=True).wait_for()
    assert re.search(r"\d+ tools", await page.locator(".server-list").inner_text())
    await page.get_by_label("Search tools").fill("say something on stderr")
    first = page.locator(".tool-list li").first
    await first.get_by_role("button", name="shop.complain").wait_for()
    assert "Say something on stderr." in await first.inner_text()
    await first.get_by_role("button", name="shop.complain").click()
    await page.get_by_label("Details of shop.complain").get_by_text("text").first.wait_for()


async def test_savings_are_told_by_day_and_by_server_in_numbers(
    console: Console, anne: httpx2.AsyncClient
) -> None:
    code = "from servers.shop import echo\nfor n in range(3): echo('x' * 900)"
    before = (await anne.get(f"{API}/stats")).json()["total"]["calls"]
    ran = await anne.post(f"{API}/sessions/saves/execute", json={"code": code})
    assert ran.json()["status"] == "ok"
    page = console.page

    async def are_the_same() -> bool:
        told = (await anne.get(f"{API}/stats")).json()
        if told["total"]["calls"] < before + 3:
            return False
        await console.show("savings")
        await page.reload()
        figures = page.locator(".figure", has_text="Tool calls").locator("strong")
        shown = int(re.sub(r"\D", "", await figures.inner_text()))
        [shop] = [each for each in told["servers"] if each["name"] == "shop"]
        bars = page.locator(".card", has=page.get_by_role("heading", name="By server"))
        name = f"shop: {shop['tokens']} tokens"
        is_there = await bars.get_by_role("progressbar", name=name).count() == 1
        words = await bars.inner_text()
        return shown == told["total"]["calls"] and is_there and f"{shop['calls']} calls" in words

    await until(are_the_same, "the page has the numbers of the ledger")
    chart = page.get_by_role("img", name=re.compile(r"Tokens by day over 30 days; \S+ were saved"))
    await chart.wait_for()
    await page.get_by_role("button", name="7 days").click()
    await page.get_by_role("img", name=re.compile("over 7 days")).wait_for()


async def test_records_of_the_audit_log_are_rows(
    console: Console, anne: httpx2.AsyncClient
) -> None:
    ran = await anne.post(f"{API}/sessions/records/execute", json={"code": "1 / 0"})
    assert ran.json()["status"] == "error"
    page = console.page
    newest = {"kind": "execution.ended", "limit": "1"}

    async def is_written() -> bool:
        [record] = (await anne.get(f"{API}/audit", params=newest)).json()["items"]
        return bool(record["status"] == "error")

    await until(is_written, "it is on record")
    await console.show("audit")
    await page.reload()
    row = page.locator("table.records tbody tr", has_text="execution ended").first
    failed = row.filter(has_text="status error")
    await failed.wait_for()
    await failed.get_by_role("button", name="execution ended").click()
    record = page.get_by_label("Record", exact=True)
    assert '"status": "error"' in await record.inner_text()
    assert '"user": "anne"' in await record.inner_text()


async def test_uses_of_a_skill_are_counted_where_it_is_shown(
    console: Console, anne: httpx2.AsyncClient
) -> None:
    before = (await anne.get(f"{API}/skills/top-customers")).json()["skill"]["uses"]
    used = {"code": "from skills import top_customers\ntop_customers.run()"}
    ran = await anne.post(f"{API}/sessions/uses/execute", json=used)
    assert ran.json()["status"] == "ok", ran.text

    async def is_counted() -> bool:
        told = (await anne.get(f"{API}/skills/top-customers")).json()["skill"]
        return bool(told["uses"] == before + 1)

    await until(is_counted, "the use is counted")
    await console.show("audit")
    await console.show("skills")
    card = console.page.locator(".skill-list > li", has_text="top-customers")
    await card.get_by_text(f"used {before + 1} times").wait_for()


async def test_it_is_used_on_a_phone(console: Console) -> None:
    page = console.page
    await page.set_viewport_size({"width": 390, "height": 800})
    try:
        await console.begin("phone")
        await console.show("tools")
        pages = page.get_by_role("navigation", name="Pages")
        assert not await pages.get_by_role("link", name="Cells").is_visible()
        await page.get_by_role("button", name="Open the menu").click()
        await pages.get_by_role("link", name="Cells").click()
        await pages.get_by_role("link", name="Cells").wait_for(state="hidden")
        cell = await console.run("print('deep')\n6 * 7")
        assert await cell.get_by_label("Result").inner_text() == "42"
        cell = await console.write("while True: pass", 2)
        await cell.locator(".cm-content").press("Control+Enter")
        stop = page.get_by_role("button", name="Stop", exact=True)
        await stop.click()
        await cell.locator(".foot .mark").wait_for()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
    finally:
        await page.set_viewport_size({"width": 1280, "height": 860})
