"""Calling tools from code: plain, awaited, in threads; what fails, what is cancelled, the clock."""

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Result, Session
from divingbell.gateway import pipeline
from divingbell.gateway.context import Answer
from divingbell.models import Event
from divingbell.principal import Principal
from divingbell.session.calls import MAX_BYTES, Calls, Record, Waiting
from divingbell.shares import collector, host_time
from divingbell_inside import frames
from tests.collecting import collections_begun
from tests.gateway.galley import galley
from tests.waiting import PATIENCE, until


@pytest.fixture(scope="module")
async def kitchen() -> AsyncIterator[Divingbell]:
    async with galley() as (bell, _):
        yield bell


@pytest.fixture
async def session(kitchen: Divingbell) -> AsyncIterator[Session]:
    async with kitchen.session(user="ann") as session:
        yield session


async def good(session: Session, code: str, timeout: float | None = None) -> Result:
    result = await session.run(code, timeout=timeout)
    assert result.status == "ok", result.error
    return result


async def test_a_tool_is_a_function_to_import(session: Session) -> None:
    result = await good(session, "from servers.galley import add, echo\nadd(2, 3), echo('hi')")
    assert result.value == (5, "hi")
    assert [(call.name, call.status) for call in result.calls] == [
        ("galley.add", "ok"),
        ("galley.echo", "ok"),
    ]


async def test_packages_load_when_they_are_used(session: Session) -> None:
    assert (await good(session, "servers.galley.add(1, b=1)")).value == 2
    code = "import servers.galley.add\nfrom servers.galley.add import add\nservers.galley.add(1, 2)"
    assert (await good(session, code)).value == 3


async def test_importing_everything_replaces_nothing_that_every_cell_has(session: Session) -> None:
    code = "from servers.galley import *\nimport builtins\nopen is builtins.open, add(1, 2)"
    assert (await good(session, code)).value == (True, 3)
    for code in (
        "servers.galley.open('soup')",
        "from servers.galley import open\nopen('soup')",
        "call_mcp_tool('galley.open', {'kind': 'soup'})",
    ):
        assert "soup is open" in str((await good(session, code)).value)
    assert "open" in (await good(session, "dir(servers.galley)")).value


async def test_structured_results_are_python_values(session: Session) -> None:
    code = "servers.galley.order('me', [{'name': 'pan', 'price': 2.5}])"
    expected = {
        "customer": "me",
        "items": [{"name": "pan", "price": 2.5, "tags": []}],
        "total": 2.5,
    }
    assert (await good(session, code)).value == expected


async def test_images_are_objects_that_can_be_saved_and_shown(session: Session) -> None:
    result = await good(session, "picture = servers.galley.pixel()\npicture")
    assert [output.type for output in result.outputs if output.type != "text/plain"] == [
        "image/png"
    ]
    saved = await good(session, "picture.save('/workspace/p.png'), len(picture.data)")
    assert saved.value == ("/workspace/p.png", 70)
    assert (await session.files.get("p.png")).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "code",
    [
        "servers.galley.postcard('hello')",
        "call_mcp_tool('galley.postcard', {'words': 'hello'}, result_type='raw')",
    ],
)
async def test_an_image_beside_text_is_shown_with_it(session: Session, code: str) -> None:
    result = await good(session, code)
    text, image = result.outputs
    assert "hello" in str(text.data) and "<image/png, 70 bytes" in str(text.data)
    assert (image.type, image.name) == ("image/png", "display")
    assert isinstance(image.data, bytes) and image.data.startswith(b"\x89PNG")


async def test_resources_and_prompts_can_be_reached(session: Session) -> None:
    await good(session, "import servers.galley as galley")
    assert (await good(session, "galley.read_resource('notes://today')")).value == "Dive at noon."
    code = "galley.read_resource('notes://picture').save('n.png')"
    assert (await good(session, code)).value == "n.png"
    listed = await good(session, "[r.get('uri') or r['uriTemplate'] for r in galley.resources()]")
    assert listed.value == ["notes://today", "notes://picture", "notes://day/{day}"]
    assert (await good(session, "[p['name'] for p in galley.prompts()]")).value == ["plan"]
    code = "galley.get_prompt('plan', topic='soup')['messages'][0]['content']['text']"
    assert (await good(session, code)).value == "Make a plan about soup."


async def test_gather_runs_calls_at_once(session: Session) -> None:
    code = (
        "import asyncio\nfrom servers.galley import count, counted, sleep\n"
        "await asyncio.gather(*[sleep(0.2) for _ in range(50)], count(name='gathered'))\n"
        "await counted('gathered')"
    )
    # One after the other they would take more than the cell has.
    assert (await good(session, code, timeout=8)).value == 1


async def test_everything_can_be_awaited(session: Session) -> None:
    code = (
        "found = await search_tools('add numbers', limit=1)\n"
        "names = await list_mcp_tools('galley')\n"
        "details = await get_mcp_tool_details(found[0]['name'])\n"
        "value = await call_mcp_tool('mcp__galley__add', {'a': 1, 'b': 2})\n"
        "found, 'galley.echo' in names, details['signature'], value"
    )
    assert (await good(session, code)).value == (
        [{"name": "galley.add", "server": "galley"}],
        True,
        "add(a: int, b: int) -> int",
        3,
    )


async def test_the_usual_ways_of_asyncio_work_on_a_call(session: Session) -> None:
    code = """
import asyncio
from servers.galley import add, sleep
async def all_ways():
    done, _ = await asyncio.wait([add(1, 1)])
    values = [task.result() for task in done]
    values.append(await asyncio.wait_for(add(1, 2), 5))
    values += [await future for future in asyncio.as_completed([add(1, 3)])]
    values.append(await asyncio.shield(add(1, 4)))
    async with asyncio.timeout(5):
        values.append(await add(1, 5))
    try:
        await asyncio.wait_for(sleep(30), 0.05)
    except TimeoutError:
        values.append("too slow")
    return values
asyncio.run(all_ways())
"""
    assert (await good(session, code)).value == [2, 3, 4, 5, 6, "too slow"]


async def test_a_call_that_was_not_awaited_says_so(session: Session) -> None:
    for use in (
        "call['a']",
        "call.upper()",
        "list(call)",
        "call + '!'",
        "2 * call",
        "call()",
        "len(call)",
    ):
        code = (
            "async def careless():\n    call = servers.galley.echo('x')\n"
            f"    try:\n        {use}\n    except (TypeError, AttributeError) as error:\n"
            "        await call\n        return str(error)\nawait careless()"
        )
        assert "write `await` before it" in (await good(session, code)).value, use


async def test_threads_can_call(session: Session) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from servers.galley import add\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    found = list(pool.map(lambda n: add(n, n), range(40)))\n"
        "add(1, 1)\nfound == [2 * n for n in range(40)]"
    )
    assert (await good(session, code)).value is True


async def test_a_thread_goes_on_calling_between_cells(session: Session) -> None:
    code = (
        "import threading\nfrom servers.galley import add, sleep\nheard = []\n"
        "def work():\n    for n in range(5):\n        sleep(0.05); heard.append(add(n, 0))\n"
        "thread = threading.Thread(target=work); thread.start()"
    )
    await good(session, code)
    assert (await good(session, "thread.join(); heard")).value == [0, 1, 2, 3, 4]


async def test_a_task_goes_on_calling_between_cells(session: Session) -> None:
    code = (
        "import asyncio\nfrom servers.galley import add\n"
        "async def work():\n    return [await add(n, 0) for n in range(5)]\n"
        "task = asyncio.create_task(work()); await asyncio.sleep(0)"
    )
    await good(session, code)

    async def is_done() -> bool:
        return (await good(session, "task.done()")).value is True

    await until(is_done, "the task has made its calls")
    assert (await good(session, "task.result()")).value == [0, 1, 2, 3, 4]


async def test_a_failing_tool_raises_with_the_servers_words(session: Session) -> None:
    code = (
        "from servers.galley import fail\ntry:\n    fail('no salt')\nexcept ToolError as e: r = e"
    )
    await good(session, code)
    result = await good(session, "'no salt' in str(r), r.code, r.tool")
    assert result.value == (True, "tool_error", "galley.fail")
    uncaught = await session.run("fail('no pepper')")
    assert uncaught.status == "error" and uncaught.error is not None
    assert uncaught.error.type.endswith("ToolError") and "no pepper" in uncaught.error.message


async def test_wrong_arguments_name_the_field_and_show_the_signature(session: Session) -> None:
    code = "servers.galley.order('me', [{'name': 'pan', 'prise': 1}], currency='GBP')"
    result = await session.run(code)
    assert result.error is not None
    for words in ("items[0].price", "currency", "'EUR'", "order(", "customer: str"):
        assert words in result.error.message
    # It never left, so it is no side effect.
    assert result.notes == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{'text': object()}", "the argument 'text' can't be sent"),
        ("{'text': float('nan')}", "can't be sent"),
        ("{'text': '\\ud800'}", "not strict JSON"),
        ("{'tekst': 'x'}", "text"),
        ("{'text': 'x', 'more': 1}", "more"),
        ("['x']", "the arguments are a dict"),
    ],
)
async def test_arguments_that_can_not_be_sent_are_refused(
    session: Session, arguments: str, words: str
) -> None:
    result = await session.run(f"call_mcp_tool('galley.echo', {arguments})")
    assert result.error is not None and words in result.error.message
    assert (await good(session, "1 + 1")).value == 2


async def test_numbers_dates_and_paths_pass_as_plain_data(session: Session) -> None:
    code = (
        "import numpy as np, datetime, pathlib\nfrom servers.galley import add, echo\n"
        "add(np.int64(2), 3), echo(datetime.date(2026, 1, 2)), echo(pathlib.Path('/a'))"
    )
    assert (await good(session, code)).value == (5, "2026-01-02", "/a")


async def test_names_that_do_not_exist_are_explained(session: Session) -> None:
    result = await session.run("call_mcp_tool('galley.ad', {})")
    assert result.error is not None and "did you mean galley.add" in result.error.message
    result = await session.run("from servers.galleon import add")
    assert result.error is not None and "there is: galley" in result.error.message


async def test_a_failed_cell_lists_the_calls_already_made(session: Session) -> None:
    result = await session.run("servers.galley.echo('once')\nservers.galley.add(1, 2)\n1 / 0")
    assert result.status == "error"
    assert result.notes == (
        'calls of tools already made: galley.echo({"text": "once"}): ok; '
        'galley.add({"a": 1, "b": 2}): ok',
    )


async def test_calls_that_are_repeated_are_named_once_with_their_count(session: Session) -> None:
    code = (
        "for _ in range(30): servers.galley.echo('a')\n"
        "for number in (1, 2, 2): servers.galley.add(number, 0)\n1 / 0"
    )
    [note] = (await session.run(code)).notes
    assert note == (
        'calls of tools already made: galley.echo({"text": "a"}) 30 times: ok; '
        'galley.add, 3 calls: ok, with ({"a": 1, "b": 0}), ({"a": 2, "b": 0}) 2 times'
    )


async def test_of_very_many_calls_some_are_named_and_all_are_counted() -> None:
    record = Record()
    for number in range(1000):
        record.add(
            Waiting("a.b", f'{{"x":{number}}}'.encode(), 0, contextvars.Context()), "ok", 1.0
        )
    words = record.note_on_effects() or ""
    assert words.startswith("calls of tools already made: a.b, 20 calls: ok, with (")
    assert words.endswith("; and 980 more")


async def test_the_clock_stands_still_while_a_tool_is_awaited(session: Session) -> None:
    result = await session.run("servers.galley.sleep(1.5)", timeout=0.5)
    assert (result.status, result.value) == ("ok", "slept 1.5 s")


async def test_the_clock_runs_while_code_computes_behind_a_call(session: Session) -> None:
    code = (
        "import threading\n"
        "threading.Thread(target=lambda: servers.galley.sleep(60), daemon=True).start()\n"
        "while True: pass"
    )
    result = await session.run(code, timeout=0.5)
    assert result.status == "timeout"


async def test_a_cell_ends_at_its_ceiling_whatever_it_waits_for(kitchen: Divingbell) -> None:
    async with kitchen.session(user="ann", ceiling=0.6, timeout=0.5) as session:
        result = await session.run("servers.galley.sleep(60)")
        assert result.status == "timeout" and result.error is not None
        assert "ceiling of 0.6 s" in result.error.message
        assert (await good(session, "2")).value == 2


async def test_an_interrupt_cancels_the_call_upstream(
    session: Session, kitchen: Divingbell
) -> None:
    before = (await good(session, "servers.galley.counted('cancelled')")).value
    asleep = (await good(session, "servers.galley.counted('asleep')")).value
    started = asyncio.create_task(session.run("servers.galley.sleep(60)"))
    async with kitchen.session(user="ann") as other:

        async def is_asleep() -> bool:
            return (await good(other, "servers.galley.counted('asleep')")).value > asleep

        await until(is_asleep, "the call is under way at the server")
    await session.interrupt()
    result = await started
    assert result.status == "cancelled" and "galley.sleep" in result.notes[0]

    async def is_cancelled() -> bool:
        return (await good(session, "servers.galley.counted('cancelled')")).value > before

    await until(is_cancelled, "the server hears of it")


async def test_progress_shows_up_as_events(session: Session) -> None:
    events = [event async for event in session.stream("servers.galley.climb(3)")]
    told = [(e.tool, e.progress, e.total, e.text) for e in events if e.type == "progress"]
    assert told == [("galley.climb", n, 3, f"step {n}") for n in (1, 2, 3)]


async def test_large_results_stay_in_the_sandbox(session: Session) -> None:
    result = await good(
        session,
        "rows = servers.galley.rows(10_000)\n[row['id'] for row in rows if row['state'] == 'open']",
    )
    assert result.value == [1000 * n for n in range(10)]


async def test_ten_thousand_calls_at_once_are_answered(kitchen: Divingbell) -> None:
    async with galley({"calls_per_cell": 0, "calls_per_session": 0}) as (_, session):
        code = (
            "import asyncio\nfrom servers.galley import add\n"
            "found = await asyncio.gather(*[call_mcp_tool('list_mcp_tools', {'server': 'galley'}) "
            "for n in range(10_000)])\nlen(found)"
        )
        assert (await good(session, code, timeout=60)).value == 10_000


async def test_budgets_end_a_loop_of_calls(session: Session) -> None:
    async with galley({"calls_per_cell": 5}) as (_, session):
        code = (
            "made = 0\ntry:\n    while True:\n        servers.galley.add(1, 1); made += 1\n"
            "except ToolError as error: print(error)\nmade"
        )
        result = await good(session, code)
        assert result.value == 5 and "calls_per_cell" in result.text


async def test_a_forked_child_has_no_line_to_tools(session: Session) -> None:
    code = (
        "import os\npid = os.fork()\nif pid == 0:\n    try:\n        servers.galley.add(1, 1)\n"
        "    except RuntimeError as error: print(error, flush=True)\n    os._exit(0)\n"
        "os.waitpid(pid, 0)\nservers.galley.add(1, 1)"
    )
    result = await good(session, code)
    assert "the session's own process only" in result.text and result.value == 2


async def test_raw_frames_get_no_further_than_the_wrappers(session: Session) -> None:
    """Forged ids, names and methods on the data line itself: the gateway decides, not the stub."""
    code = (
        "from divingbell_inside import tools, frames\nline = tools._line\n"
        "for name in ('galley.nothing', 'other.tool', '__class__', 'stop', '../../x', ''):\n"
        "    try:\n        tools.call(name, {})\n    except ToolError as error: print(error.code)"
    )
    result = await good(session, code)
    assert result.text.split() == ["tool_unknown"] * 6


async def test_a_call_without_sense_ends_the_line_and_not_the_session(session: Session) -> None:
    for header in ("{'event': 'call'}", "{'event': 'call', 'id': 'x', 'name': 'a.b'}"):
        code = (
            "from divingbell_inside import tools, frames\nimport time\n"
            f"tools._line._outlet.send(frames.pack({header}))\ntime.sleep(20)"
        )
        result = await session.run(code)
        assert result.status == "killed" and result.error is not None
        assert "makes no sense" in result.error.message
    assert (await good(session, "servers.galley.add(1, 1)")).value == 2


async def test_a_cancel_of_another_call_is_heard_by_nobody(session: Session) -> None:
    code = (
        "from divingbell_inside import tools, frames\n"
        "for number in (0, -1, 99999, 2**60):\n"
        "    tools._line._outlet.send(frames.pack({'event': 'cancel', 'id': number}))\n"
        "servers.galley.add(1, 1)"
    )
    assert (await good(session, code)).value == 2


async def test_after_a_crash_the_calls_of_the_dead_interpreter_go_nowhere(session: Session) -> None:
    code = (
        "import os, threading, time\n"
        "threading.Thread(target=lambda: servers.galley.sleep(30), daemon=True).start()\n"
        "time.sleep(0.2)\nos._exit(3)"
    )
    result = await session.run(code)
    assert result.status == "killed"
    assert (await good(session, "servers.galley.add(1, 1)")).value == 2


async def test_a_copy_that_takes_over_gives_up_the_calls_of_the_one_before(
    kitchen: Divingbell,
) -> None:
    async with galley(copy_after=0.05) as (_, session):
        code = (
            "import asyncio\nfrom servers.galley import add, sleep\n"
            "task = asyncio.ensure_future(sleep(60)); await asyncio.sleep(0)"
        )
        await good(session, code)
        await until(lambda: session.copied_cell == 1, "the copy")
        result = await session.run("import os; os._exit(1)")
        assert (result.status, result.state) == ("killed", "rewound")
        code = "try:\n    await task\nexcept ToolError as error: print(error)\nadd(1, 1)"
        assert "the interpreter was replaced" in (await good(session, code)).text


async def test_the_clock_also_stands_for_what_an_earlier_cell_has_started(session: Session) -> None:
    code = (
        "import asyncio\nfrom servers.galley import sleep\n"
        "task = asyncio.ensure_future(sleep(1.5)); await asyncio.sleep(0)"
    )
    await good(session, code)
    result = await good(session, "await task", timeout=0.5)
    assert result.value == "slept 1.5 s"
    assert [call.name for call in result.calls] == ["galley.sleep"]


def _under_way(session: Session) -> int:
    """Calls that the host has heard of: those at the server, and those that wait for their turn."""
    return len(session._handle._calls._tasks) + len(session._handle._calls._waiting)


async def test_an_interrupt_answers_those_who_wait_for_their_turn_too() -> None:
    async with galley({"calls_at_once": 2}) as (_, session):
        code = (
            "import threading, time\nfrom servers.galley import sleep\nheard = []\n"
            "def work():\n    try:\n        sleep(60)\n"
            "    except ToolError as error: heard.append(error.code)\n"
            "threads = [threading.Thread(target=work) for _ in range(6)]\n"
            "for thread in threads: thread.start()\ntime.sleep(60)"
        )
        running = asyncio.create_task(session.run(code))
        await until(lambda: _under_way(session) == 6, "all calls are with the host")
        await session.interrupt()
        assert (await running).status == "cancelled"
        code = "for thread in threads: thread.join(20)\nheard"
        assert (await good(session, code)).value == ["tool_cancelled"] * 6


class Waits:
    """A door at which one call at a time is let in, and none is answered."""

    calls_at_once = 1

    def generation(self, session: str) -> int:
        return 0

    async def offer(self, *_: object) -> None: ...

    def cost(self, arguments: bytes) -> int:
        return len(arguments)

    async def answer(self, *_: object) -> Answer:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    def received(self, session: str, user: str, source: str) -> None: ...

    def end_run(self, session: str) -> None: ...

    async def balance(self, *_: object) -> None: ...

    async def forget(self, session: str) -> None: ...


class Counting:
    """A cell that counts its calls."""

    number = 1

    def __init__(self) -> None:
        self.open, self.record = 0, Record()
        self.context = contextvars.copy_context()

    def call_began(self) -> None:
        self.open += 1

    def call_ended(self, call: Waiting, status: str, milliseconds: float) -> None:
        self.open -= 1
        self.record.add(call, status, milliseconds)

    def tell(self, event: Event) -> None: ...

    def note(self, words: str) -> None: ...


async def test_an_interrupt_answers_thousands_who_wait_a_few_at_a_time() -> None:
    refused, cell, number = list[int](), Counting(), 5_000

    def send(header: frames.Header, body: bytes) -> None:
        assert header["code"] == "tool_cancelled"
        refused.append(int(str(header["id"])))

    async def drained() -> None: ...

    calls = Calls(Waits(), "s", Principal("u"), send, drained)
    for each in range(number):
        calls.begin({"id": each, "name": "a.b"}, b"{}", cell)
    calls.cancel_all()
    # The cell has them in its result however soon it ends.
    assert cell.open <= 1 and cell.record.count >= number - 1 and calls._bytes <= 2
    most = before = len(refused)
    while len(refused) < number:
        await asyncio.sleep(0)
        most, before = max(most, len(refused) - before), len(refused)
    assert most <= 1_000 and sorted(refused) == list(range(number))
    assert cell.open == 0 and cell.record.count == number
    await calls.close()


async def test_answers_that_are_left_to_send_are_not_sent_to_another_interpreter() -> None:
    sent = list[frames.Header]()

    async def drained() -> None: ...

    calls = Calls(Waits(), "s", Principal("u"), lambda header, _: sent.append(header), drained)
    for each in range(5_000):
        calls.begin({"id": each, "name": "a.b"}, b"{}", None)
    calls.cancel_all()
    calls.line_lost()
    before = len(sent)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(sent) == before
    await calls.close()


async def test_a_loop_that_idles_is_not_stopped_under_the_next_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request to copy and the next cell may both be there when the loop wakes up."""
    monkeypatch.setattr("divingbell.session.copies.REST", 0.0)
    async with galley(copy_after=0.01) as (_, session):
        code = (
            "import asyncio\nasync def tick():\n"
            "    while True:\n        await asyncio.sleep(0.001)\n"
            "ticking = asyncio.create_task(tick()); await asyncio.sleep(0)"
        )
        await good(session, code)
        for number in range(40):
            await asyncio.sleep(0.01)
            assert (await good(session, f"await asyncio.sleep(0.002)\n{number}")).value == number


async def test_without_servers_a_call_says_how_to_get_some(bell: Divingbell) -> None:
    async with bell.session() as session:
        assert (await good(session, "search_tools('anything')")).value == []
        result = await session.run("call_mcp_tool('a.b', {})")
        assert result.error is not None and "there is no tool 'a.b'" in result.error.message


async def test_no_process_of_a_server_is_left(kitchen: Divingbell) -> None:
    async with galley() as (bell, session):
        await good(session, "servers.galley.add(1, 1)")
        pid = bell.gateway.fleet.upstream("galley").pid
        assert pid is not None
    await until(lambda: not _lives(pid), "the end of the server's process")


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# What their arguments take


SENDING = (
    "from divingbell_inside import frames, tools\n"
    "def send(number, name, body, event='call'):\n"
    "    header = {'event': event, 'id': 10**6 + number, 'name': name}\n"
    "    tools._line._outlet.send(frames.pack(header, body))\n"
)


async def test_arguments_are_parsed_in_turn_as_far_as_there_is_room(session: Session) -> None:
    code = (
        f"{SENDING}"
        "for number in range(20):\n"
        "    send(number, 'galley.echo', b'{\"text\":[' + b'[],' * 15_000 + b'[]]}')\n"
        "servers.galley.add(2, 2)"
    )
    calls, most = session._handle._calls, 0
    run = asyncio.create_task(session.run(code))
    while not run.done():
        most = max(most, calls._cost)
        await asyncio.sleep(0)
    assert (await run).value == 4
    assert 10_000_000 < most <= MAX_BYTES
    # Large ones are parsed in a thread, and a small one that came later may overtake them.
    await until(lambda: calls._cost == calls._bytes == 0, "the end of all of them")


@pytest.mark.parametrize("name", ["search_tools", "list_mcp_tools", "galley.echo", "no.such"])
async def test_what_is_too_large_is_refused_before_it_is_parsed(
    session: Session, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    parse = pipeline.frames.parse
    monkeypatch.setattr(
        pipeline.frames, "parse", lambda text: parsed.append(len(text)) or parse(text)
    )
    result = await session.run(
        "for value in ('x' * 2_000_000, [[]] * 100_000):\n"
        f"    try: call_mcp_tool({name!r}, {{'query': value}})\n"
        "    except ToolError as error: print(error.code, error)"
    )
    assert result.text.count("tool_limit") == 2, result.text
    assert "send less at a time" in result.text and "send fewer" in result.text
    assert max(parsed) < 10_000


@pytest.mark.parametrize(
    ("text", "is_light"),
    [
        ("x" * 10_000, True),
        ([[]] * 800, True),
        ([[]] * 1_000, False),
        ([{}] * 10_000, False),
        ([[]] * 19_000, False),
        ([1.5] * 5_000, False),
        ("x" * 100_000, False),
    ],
    ids=lambda value: f"{len(value):,}" if isinstance(value, str | list) else "",
)
async def test_heavy_arguments_are_parsed_beside_the_loop_with_nothing_collected(
    session: Session, monkeypatch: pytest.MonkeyPatch, text: object, is_light: bool
) -> None:
    parsed: list[tuple[bool, int]] = []
    parse = frames.parse

    def watched(raw: bytes) -> frames.Header:
        before = len(begun)
        found = parse(raw)
        if "text" in found:
            is_loop = threading.current_thread() is loop_thread
            parsed.append((is_loop, len(begun) - before))
        return found

    loop_thread = threading.current_thread()
    monkeypatch.setattr(frames, "parse", watched)
    with collections_begun() as begun:
        await session.run(f"call_mcp_tool('galley.echo', {{'text': {text!r}}})")
    assert len(parsed) == 1 and parsed[0][0] is is_light
    if not is_light:
        assert parsed[0][1] == 0


async def test_heavy_arguments_of_a_refused_call_are_let_go_before_anything_is_collected(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "LONGEST_REST", PATIENCE)
    young: list[int] = []

    def note(phase: str, about: object) -> None:
        if phase == "start":
            young.append(gc.get_count()[0])

    calls, lists = 20, 19_000
    code = (
        f"given = {{'text': [[]] * {lists}}}\n"
        f"for _ in range({calls}):\n"
        "    try: call_mcp_tool('galley.echo', given)\n"
        "    except ToolError: pass"
    )
    gc.callbacks.append(note)
    try:
        await good(session, code)
    finally:
        gc.callbacks.remove(note)
    # A thread that gets no processor for a while holds them for longer.
    assert sum(each >= lists for each in young) < calls / 2
    await until(gc.isenabled, "the collector goes on")


async def test_a_call_that_is_cancelled_before_it_begins_is_over(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both frames are taken in at one go, however busy the machine is.
    monkeypatch.setattr(host_time, "SLICE", 10.0)
    monkeypatch.setattr(host_time, "SLICE_AMONG_OTHERS", 10.0)
    code = (
        f"{SENDING}"
        "both = [frames.pack({'event': 'call', 'id': 10**6, 'name': 'galley.sleep'}, b'{}'),\n"
        "        frames.pack({'event': 'cancel', 'id': 10**6})]\n"
        "tools._line._outlet.send(b''.join(both))\n"
        "servers.galley.add(2, 2)"
    )
    result = await good(session, code)
    assert result.value == 4
    assert (
        not session._handle._calls._tasks
        and not session._handle._calls._runs
        and session._handle._calls._bytes == 0
    )
    assert sorted(call.status for call in result.calls) == ["not_made", "ok"]


# The context of a call

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")


async def test_a_call_runs_in_the_context_of_its_cell(kitchen: Divingbell) -> None:
    """Not of whoever made the session, which may have been for another user."""

    async def request() -> str:
        return REQUEST.get()

    code = "servers.host.request()"
    REQUEST.set("opened")
    async with kitchen.session(user="ann") as session:
        for name in ("first", "second"):
            REQUEST.set(name)
            assert (await session.run(code, tools=[request])).value == name
        REQUEST.set("streamed")
        events = [event async for event in session.stream(code, tools=[request])]
        assert events[-1].result is not None and events[-1].result.value == "streamed"


async def test_a_call_between_two_cells_runs_in_nobodys_context(kitchen: Divingbell) -> None:
    asked = asyncio.Event()

    async def request() -> str:
        asked.set()
        return REQUEST.get()

    later = (
        "import threading\nfound, go = [], threading.Event()\n"
        "def later():\n    go.wait(); found.append(servers.host.request())\n"
        "thread = threading.Thread(target=later); thread.start()\n"
        "threading.Timer(0.2, go.set).start()"
    )
    REQUEST.set("opened")
    async with kitchen.session(user="ann") as session:
        await session.run(later, tools=[request])
        async with asyncio.timeout(20):
            await asked.wait()
        REQUEST.set("next")
        assert (await session.run("thread.join(); found")).value == ["none"]
