"""Pages that work together: a person talks, answers, uploads, goes back and stops."""

from typing import Any

from divingbell.agent.scripted import Says
from tests.surfaces.http.console.browsing import Console
from tests.surfaces.http.serving import Site, Talking
from tests.waiting import until

ASKING = "from servers.shop import complain\nprint(complain('loud'))"
SPINNING = "print('begun', flush=True)\nwhile True: pass"
WAITING = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
DROP = """([zone, name, text]) => {
    const held = new DataTransfer();
    held.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"])
        zone.dispatchEvent(new DragEvent(kind, {bubbles: true, dataTransfer: held}));
}"""


async def say(page: Any, text: str) -> None:
    await page.get_by_label("Your question").fill(text)
    await page.get_by_label("Your question").press("Enter")


async def test_a_conversation_shows_code_plots_and_questions_as_they_come(
    console: Console, script: Talking
) -> None:
    page = console.page
    await console.show("chat")
    script.lines += [Says("Let me **look**.", PLOT), Says("A plot.", ASKING), Says("It was said.")]
    await say(page, "Draw something, then complain")
    log = page.get_by_role("log", name="Conversation")
    await log.get_by_text("Draw something").wait_for()
    await log.locator(".turn.ran img").wait_for()
    assert await log.locator("strong", has_text="look").count() == 1
    # The question stands in the conversation that waits, and nowhere else.
    await log.get_by_text("it is loud").wait_for()
    assert await page.locator(".approval").count() == 1 and "(1)" in await page.title()
    await log.get_by_role("button", name="Allow once").click()
    await log.get_by_text("It was said.").wait_for()
    assert await page.locator(".approval").count() == 0
    # An answer that is under way is stopped, and the next question is taken.
    script.lines += [Says("This takes long.", SPINNING), Says("Here I am.")]
    await say(page, "Count forever")
    await log.get_by_label("stdout").get_by_text("begun").wait_for()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await log.get_by_text("The answer was stopped.").wait_for()
    await say(page, "Are you there?")
    await log.get_by_text("Here I am.").wait_for()
    # All of it is there again when the page is loaded again.
    await page.reload()
    await log.get_by_text("Here I am.").wait_for()
    assert await log.locator(".turn.person").count() == 3
    assert console.complaints == []


async def test_an_approval_comes_to_whatever_page_one_is_on(console: Console, site: Site) -> None:
    page = console.page
    await console.show("tools")
    async with site.client() as client:
        path = "/api/v1/sessions/elsewhere/execute"
        async with client.stream(
            "POST", path, json={"code": ASKING}, headers={"Accept": "text/event-stream"}
        ) as answer:
            dock = page.get_by_role("alert", name="An approval waits")
            await dock.get_by_text("it is loud").wait_for()
            assert "(1)" in await page.title()
            await dock.get_by_role("button", name="Refuse").click()
            told = "".join([each async for each in answer.aiter_text()])
    assert "ToolDenied" in told
    await dock.wait_for(state="detached")
    assert "(1)" not in await page.title()


async def test_a_file_that_is_dropped_is_there_for_the_code(console: Console) -> None:
    page = console.page
    await console.begin("drops")
    await console.run("1")
    await console.show("files")
    zone = await page.locator(".files").element_handle()
    await page.evaluate(DROP, [zone, "depths ü.csv", "depth\n12\n"])
    await page.get_by_role("link", name="depths ü.csv").wait_for()
    async with page.expect_download() as loading:
        await page.get_by_role("link", name="depths ü.csv").click()
    assert (await (await loading.value).path()).read_text() == "depth\n12\n"
    await console.show("cells")
    cell = await console.run("open('depths ü.csv').read()", 2)
    assert "12" in await cell.get_by_label("Result").inner_text()
    await console.show("files")
    await page.get_by_role("button", name="Delete depths ü.csv").click()
    await page.get_by_role("link", name="depths ü.csv").wait_for(state="detached")


async def test_a_skill_goes_back_to_an_earlier_version(console: Console) -> None:
    page = console.page
    await console.show("skills")
    await page.get_by_role("link", name="top-customers").click()
    code = page.get_by_label("Code of top-customers")
    await code.get_by_text("return 2").wait_for()
    await page.get_by_role("button", name="Use version 1 again").click()
    await code.get_by_text("return 1").wait_for()
    await page.get_by_role("button", name="Use version 2 again").click()
    await code.get_by_text("return 2").wait_for()


async def test_a_session_is_stopped_from_the_page_of_sessions(console: Console, site: Site) -> None:
    page = console.page
    await console.begin("spins")
    cell = await console.write(SPINNING)
    await cell.locator(".cm-content").press("Control+Enter")
    await cell.get_by_label("stdout").get_by_text("begun").wait_for()
    await console.show("sessions")
    card = page.locator(".session-card", has=page.get_by_role("button", name="spins", exact=True))
    await card.locator(".state.running").wait_for()
    await card.get_by_role("button", name="Stop").click()
    await card.locator(".state.idle").wait_for()
    async with site.client() as client:

        async def has_ended() -> bool:
            found = (await client.get("/api/v1/executions?session=spins")).json()["items"]
            return [each["state"] for each in found] == ["ended"]

        await until(has_ended, "the run has ended")
    await card.get_by_role("button", name="End session spins").click()
    await card.wait_for(state="detached")


async def test_seven_tabs_at_work_leave_room_for_stop(browser: Any, site: Site) -> None:
    """A browser has six connections to one server: tabs share what streams hold of them."""
    context = await browser.new_context()
    tabs = [await Console.opened(context, site) for _ in range(7)]
    cells = []
    async with site.client() as client:
        for number in range(7):
            made = {"id": f"tab-{number}", "limits": {"timeout": 600}}
            assert (await client.post("/api/v1/sessions", json=made)).status_code == 201
    for number, tab in enumerate(tabs):
        await tab.begin(f"tab-{number}")
        cell = await tab.write(WAITING)
        await cell.locator(".cm-content").press("Control+Enter")
        cells.append(cell)
    # All of them show what comes, each cell and each tab's state of its session.
    for tab, cell in zip(tabs, cells, strict=True):
        await cell.get_by_label("stdout").get_by_text("begun").wait_for()
        await tab.page.locator(".session-bar .state.running").wait_for()
    for tab, cell in reversed([*zip(tabs, cells, strict=True)]):
        await tab.page.get_by_role("button", name="Stop", exact=True).click()
        await cell.locator(".foot .mark").wait_for()
        assert await cell.locator(".foot .mark").inner_text() != "ok"
    # The tab that holds the stream of events goes; another takes it over.
    await tabs[0].page.close()
    async with site.client() as client:
        await client.post("/api/v1/sessions", json={"id": "opened-later"})
    for tab in tabs[1:]:
        choice = tab.page.locator(".session-choice option", has_text="opened-later")
        await choice.first.wait_for(state="attached")
    async with site.client() as client:
        for name in ("opened-later", *(f"tab-{number}" for number in range(7))):
            await client.delete(f"/api/v1/sessions/{name}")
    await context.close()
