"""The console, as a person uses it, in a real browser."""

import asyncio
from typing import Any

import pytest

from tests.surfaces.http.console.browsing import Console
from tests.surfaces.http.serving import ANNE, Site
from tests.waiting import until

MOST_AT_FIRST, MOST_IN_ALL = 60_000, 230_000
"""Bytes, compressed."""
AXE = "more => axe.run(document, {iframes: false, resultTypes: ['violations'], ...more})"
PAGES = (
    "cells", "chat", "sessions", "files", "tools", "approvals", "savings",
    "skills", "skills/top-customers", "audit",
)  # fmt: skip


async def test_code_runs_and_its_value_is_shown(console: Console) -> None:
    await console.begin("values")
    cell = await console.run("x = 20\nx + 22")
    assert await cell.get_by_label("Result").inner_text() == "42"
    cell = await console.run("x * 2", 2)
    assert await cell.get_by_label("Result").inner_text() == "40"
    assert console.complaints == []


async def test_output_is_shown_while_the_code_still_runs(console: Console) -> None:
    await console.begin("streams")
    cell = await console.write("import time\nprint('begun')\ntime.sleep(60)")
    await cell.locator(".cm-content").press("Control+Enter")
    await cell.get_by_label("stdout").get_by_text("begun").wait_for()
    assert await cell.locator(".foot .mark").count() == 0
    await console.page.get_by_role("button", name="Stop", exact=True).click()
    await cell.locator(".foot .mark").wait_for()
    assert await cell.locator(".foot .mark").inner_text() != "ok"


async def test_tables_plots_and_errors_are_shown_as_such(console: Console) -> None:
    await console.begin("outputs")
    code = "import pandas as pd\npd.DataFrame({'depth': [10, 20], 'name': ['<img src=x>', 'b']})"
    cell = await console.run(code)
    table = cell.get_by_role("table")
    assert await table.locator("thead th").all_inner_texts() == ["depth", "name"]
    assert await table.get_by_text("<img src=x>").count() == 1
    assert await cell.locator("iframe").count() == 0
    cell = await console.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);", 2)
    assert await cell.locator("img").evaluate("image => image.naturalWidth") > 100
    cell = await console.run("def dive():\n    1 / 0\ndive()", 3)
    assert "ZeroDivisionError" in await cell.get_by_label("Error").inner_text()
    assert console.complaints == []


async def test_markup_is_in_a_frame_its_scripts_run_after_a_click_and_a_drawing_is_an_image(
    console: Console,
) -> None:
    await console.begin("frames")
    code = (
        "from IPython.display import HTML, SVG\n"
        "HTML('<p id=p>as it was</p><script>p.textContent = \"changed\"</script>')"
    )
    cell = await console.run(code)
    frame = cell.frame_locator("iframe")
    assert await frame.locator("#p").inner_text() == "as it was"
    await cell.get_by_role("button", name="Run its scripts").click()
    await frame.get_by_text("changed").wait_for()
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="77" height="20"></svg>'
    cell = await console.run(f"SVG('{drawing}')", 2)
    assert "/outputs/" in await cell.locator("img").get_attribute("src")
    await console.page.wait_for_function("document.querySelector('.cell img').naturalWidth === 77")


async def test_completion_is_offered_from_the_session(console: Console) -> None:
    await console.begin("completions")
    await console.run("depth_of_the_sea = 10_994")
    cell = await console.write("depth_o")
    await until_known(console)
    editor = cell.locator(".cm-content")
    option = console.page.get_by_role("option", name="depth_of_the_sea")

    async def is_taken() -> bool:
        # The editor takes no click within 75 ms of showing the list: nobody has read it by then.
        if await option.count() == 0:
            await editor.press("Control+Space")
            await option.wait_for()
        await option.click()
        return bool(await editor.inner_text() == "depth_of_the_sea")

    await until(is_taken, "the completion is taken")


async def until_known(console: Console) -> None:
    """Return once the page has heard of the session."""
    await console.page.locator(".session-bar .state", has_text="idle").wait_for()


async def test_cells_are_there_again_when_the_page_is_loaded_again(console: Console) -> None:
    await console.begin("reloads")
    await console.run("print('kept')\n6 * 7")
    await console.page.reload()
    cell = console.page.get_by_role("article", name="Cell 1", exact=True)
    await cell.get_by_label("stdout").get_by_text("kept").wait_for()
    assert await cell.get_by_label("Result").inner_text() == "42"


async def test_all_of_it_can_be_done_by_keyboard(console: Console) -> None:
    await console.begin("keys")
    await console.page.locator(".cm-content").first.wait_for()
    await console.page.keyboard.type("a = 1")
    await console.page.keyboard.press("Shift+Enter")
    second = console.page.get_by_role("article", name="Cell 2", exact=True)
    await second.locator(".cm-content").wait_for()
    await console.page.keyboard.type("a + 1")
    await console.page.keyboard.press("Control+Enter")
    assert await second.get_by_label("Result").inner_text() == "2"
    await console.page.keyboard.press("ArrowUp")
    focused = "document.activeElement.closest('article')?.getAttribute('aria-label')"
    assert await console.page.evaluate(focused) == "Cell 1"


async def test_nothing_is_asked_of_anyone_else(console: Console, site: Site) -> None:
    for name in PAGES:
        await console.show(name)
        await console.page.locator("main h1").first.wait_for(state="attached")
    assert console.requests
    assert [url for url in console.requests if not url.startswith(f"{site.url}/")] == []
    assert not [url for url in console.requests if ANNE in url]


async def test_the_token_is_out_of_the_address_and_out_of_scripts_reach(console: Console) -> None:
    assert ANNE not in console.page.url
    assert await console.page.evaluate("document.cookie") == ""
    [cookie] = await console.page.context.cookies()
    assert cookie["name"] == f"divingbell_{console.site.port}"
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"


async def test_signing_out_ends_what_the_cookie_was_good_for(browser: Any, site: Site) -> None:
    context = await browser.new_context()
    console = await Console.opened(context, site)
    [cookie] = await console.page.context.cookies()
    await console.page.get_by_role("button", name="Sign out").click()
    await console.page.get_by_label("Token").wait_for()
    async with console.site.client(None, Cookie=f"{cookie['name']}={cookie['value']}") as client:
        assert (await client.get("/api/v1/me")).status_code == 401
    await console.page.get_by_label("Token").fill(ANNE)
    await console.page.get_by_role("button", name="Sign in").click()
    await console.page.get_by_role("navigation", name="Pages").wait_for(state="attached")
    await context.close()


async def test_little_is_loaded_before_the_page_is_there(browser: Any, site: Site) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    sizes: dict[str, int] = {}

    async def finished(request: Any) -> None:
        sizes[request.url] = (await request.sizes())["responseBodySize"]

    page.on(
        "requestfinished", lambda request: tasks.append(asyncio.ensure_future(finished(request)))
    )
    tasks: list[asyncio.Future[None]] = []
    await page.goto(f"{site.url}/#token={ANNE}")
    await page.locator(".cm-content").first.wait_for()
    await page.goto(f"{site.url}/#/savings")
    await until(lambda: any("plot" in url and ".js" in url for url in sizes), "the chart is loaded")
    await asyncio.gather(*tasks)
    ours = {url: size for url, size in sizes.items() if "/api/" not in url}
    later = {url: size for url, size in ours.items() if "editor" in url or "plot" in url}
    assert sum(ours.values()) - sum(later.values()) < MOST_AT_FIRST
    assert sum(ours.values()) < MOST_IN_ALL
    await context.close()


async def test_the_audit_page_shows_the_code_that_was_run(console: Console) -> None:
    await console.begin("audited")
    await console.run("'a dive that is recorded'")
    await console.run("'what came before is written by now'", 2)
    await console.show("audit")
    records = console.page.get_by_role("region", name="Records")
    await records.get_by_text("cell 1 · code 'a dive that is recorded'").wait_for()


async def complaints_of_axe(console: Console, **rules: Any) -> list[tuple[str, list[str]]]:
    found = await console.page.evaluate(AXE, rules)
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found["violations"]
    ]


@pytest.mark.parametrize("width", [1280, 390])
async def test_axe_finds_nothing(console: Console, axe: str, width: int) -> None:
    page = console.page
    await page.set_viewport_size({"width": width, "height": 860})
    await console.begin(f"axe-{width}")
    await page.evaluate(axe)
    await console.run("import pandas as pd\nprint('x')\npd.DataFrame({'a': [1]})")
    for name in PAGES:
        await console.show(name)
        await page.locator("main h1").first.wait_for(state="attached")
        assert await complaints_of_axe(console) == [], name
        await page.emulate_media(color_scheme="dark")
        # All else is the same in both.
        contrast = {"runOnly": ["color-contrast"]}
        assert await complaints_of_axe(console, **contrast) == [], f"{name}, dark"
        await page.emulate_media(color_scheme="light")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0, f"{name} is wider than the window"
    await page.set_viewport_size({"width": 1280, "height": 860})
