"""A kernel, as clients of both forms of framing have it."""

import asyncio
import base64
import json
import logging
from typing import Any

import msgspec
import pytest

from divingbell import Divingbell
from divingbell.principal import Principal
from divingbell.surfaces.http.jupyter.kernels import Kernels
from divingbell.surfaces.http.jupyter.messages import Header, Message, Request
from divingbell.surfaces.http.queue import Queue, Room
from tests.surfaces.http.jupyter.conftest import Served
from tests.surfaces.http.jupyter.talking import V1, Talker, talking
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("subprotocol", [None, V1])
async def test_a_cell_is_answered_in_the_order_that_notebooks_expect(
    ada: Served, subprotocol: str | None
) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token, subprotocol) as talker:
        assert talker.is_v1 == (subprotocol == V1)
        answered = await talker.run("print('deep'); 6 * 7")
    assert answered.kinds == ["status", "execute_input", "stream", "execute_result", "status"]
    assert answered.published[0]["content"] == {"execution_state": "busy"}
    assert answered.of("execute_input") == [{"code": "print('deep'); 6 * 7", "execution_count": 1}]
    assert answered.of("stream") == [{"name": "stdout", "text": "deep\n"}]
    [result] = answered.of("execute_result")
    assert result == {"data": {"text/plain": "42"}, "metadata": {}, "execution_count": 1}
    assert answered.reply["status"] == "ok" and answered.reply["execution_count"] == 1
    assert all(each["parent_header"]["session"] == "of-the-test" for each in answered.published)


async def test_variables_stay_from_cell_to_cell(talker: Talker) -> None:
    await talker.run("depth = 40")
    answered = await talker.run("depth + 2")
    assert answered.of("execute_result")[0]["data"]["text/plain"] == "42"
    assert answered.reply["execution_count"] == 2


async def test_text_on_stderr_is_told_apart(talker: Talker) -> None:
    answered = await talker.run("import sys; print('low air', file=sys.stderr)")
    assert answered.of("stream") == [{"name": "stderr", "text": "low air\n"}]


async def test_an_error_has_its_traceback_and_aborts_what_waits_behind_it(talker: Talker) -> None:
    numbers = [
        await talker.send("execute_request", {"code": code})
        for code in ("import time; time.sleep(0.3); 1 / 0", "print('not me')", "print('nor me')")
    ]
    first, second, third = [await talker.answer(number) for number in numbers]
    [error] = first.of("error")
    assert error["ename"] == "ZeroDivisionError" and error["evalue"] == "division by zero"
    assert any("1 / 0" in line for line in error["traceback"])
    assert first.reply == {"status": "error", "execution_count": 1, **error}
    assert second.reply == third.reply == {"status": "aborted"}
    assert "stream" not in second.kinds + third.kinds
    assert (await talker.run("1 + 1")).reply["status"] == "ok"


async def test_stop_on_error_can_be_declined(talker: Talker) -> None:
    first = await talker.send("execute_request", {"code": "1 / 0", "stop_on_error": False})
    second = await talker.send("execute_request", {"code": "print('still here')"})
    assert (await talker.answer(first)).reply["status"] == "error"
    assert (await talker.answer(second)).text == "still here\n"


async def test_a_display_is_shown_in_all_its_forms_and_updated_in_place(talker: Talker) -> None:
    answered = await talker.run(
        "from IPython.display import display, HTML, JSON\n"
        "handle = display(HTML('<b>12 m</b>'), display_id=True)\n"
        "handle.update(HTML('<b>13 m</b>'))\n"
        "display({'application/json': {'depth': [12, 13]}}, raw=True)"
    )
    first, last = answered.of("display_data")
    [update] = answered.of("update_display_data")
    assert first["data"]["text/html"] == "<b>12 m</b>"
    assert update["data"]["text/html"] == "<b>13 m</b>"
    assert first["transient"]["display_id"] == update["transient"]["display_id"]
    assert last["data"]["application/json"] == {"depth": [12, 13]}


async def test_a_figure_comes_as_an_image(talker: Talker) -> None:
    answered = await talker.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()")
    [shown] = answered.of("display_data")
    assert base64.b64decode(shown["data"]["image/png"]).startswith(b"\x89PNG")


async def test_output_can_be_cleared(talker: Talker) -> None:
    answered = await talker.run(
        "from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)"
    )
    assert answered.kinds[2:5] == ["stream", "clear_output", "stream"]


async def test_a_silent_cell_shows_what_it_prints_and_no_more(talker: Talker) -> None:
    answered = await talker.run("print('quiet'); heard = 1; heard", silent=True)
    assert answered.kinds == ["status", "stream", "status"]
    assert (await talker.run("print(heard)")).text == "1\n"


async def test_input_says_that_nobody_can_type(talker: Talker) -> None:
    answered = await talker.run("input('your name? ')", allow_stdin=True)
    [error] = answered.of("error")
    assert error["ename"] == "EOFError" and "input() is not available here" in error["evalue"]


async def test_expressions_beside_a_cell_are_refused_in_words(talker: Talker) -> None:
    answered = await talker.run("a = 1", user_expressions={"double": "a * 2"})
    assert answered.reply["user_expressions"]["double"]["ename"] == "NotSupported"


async def test_a_kernel_says_what_it_is(talker: Talker) -> None:
    info = (await talker.ask("kernel_info_request")).reply
    assert info["status"] == "ok" and info["implementation"] == "divingbell"
    ran = await talker.run("import platform; print(platform.python_version())")
    assert ran.text.strip() == info["language_info"]["version"]
    assert (await talker.ask("kernel_info_request", channel="control")).reply == info


async def test_code_is_completed(talker: Talker) -> None:
    await talker.run("depth_of_wreck = 1")
    reply = (await talker.ask("complete_request", {"code": "x = depth_o", "cursor_pos": 11})).reply
    assert reply["matches"] == ["depth_of_wreck"]
    assert (reply["cursor_start"], reply["cursor_end"]) == (4, 11)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("1 + 1", "complete"),
        ("await something()", "complete"),
        ("for x in y:", "incomplete"),
        ("for x in y:\n    print(x)", "incomplete"),
        ("for x in y:\n    print(x)\n", "complete"),
        ("print(", "incomplete"),
        ("'''text", "incomplete"),
        ("1 +* 2", "invalid"),
        ("a\0b", "invalid"),
        ("(" * 2000, "invalid"),
        ("%time x", "unknown"),
        ("x = 1\n" * 2000, "unknown"),
    ],
)
async def test_code_is_told_complete_or_not(talker: Talker, code: str, status: str) -> None:
    assert (await talker.ask("is_complete_request", {"code": code})).reply["status"] == status


async def test_a_widget_is_refused_in_words(talker: Talker) -> None:
    number = await talker.send("comm_open", {"comm_id": "c1", "target_name": "jupyter.widget"})
    closed = await talker.until("comm_close")
    assert closed["parent_header"]["msg_id"] == number
    assert closed["content"]["comm_id"] == "c1" and "widgets" in closed["content"]["data"]["reason"]
    assert (await talker.ask("comm_info_request")).reply == {"status": "ok", "comms": {}}


@pytest.mark.parametrize("kind", ["inspect_request", "debug_request", "no_such_thing_request"])
async def test_a_request_that_is_not_done_is_answered_in_words(talker: Talker, kind: str) -> None:
    reply = (await talker.ask(kind, {"code": "print"})).reply
    assert reply["ename"] == "NotSupported" and kind in reply["evalue"]


async def test_a_message_that_is_no_request_is_passed_over(talker: Talker) -> None:
    await talker.send("no_such_thing", {"a": 1})
    await talker.send("input_reply", {"value": "x"}, channel="stdin")
    await talker.send("status", {"execution_state": "dead"}, channel="iopub")
    assert (await talker.run("1")).reply["status"] == "ok"


async def test_a_cell_is_interrupted_and_what_waits_is_aborted(
    ada: Served, bell: Divingbell
) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        spinning = await talker.send("execute_request", {"code": "print('on')\nwhile True: pass"})
        waiting = await talker.send("execute_request", {"code": "print('not me')"})
        await talker.until("stream")
        assert (await ada.http.get(f"/kernels/{name}")).json()["execution_state"] == "busy"
        assert (await ada.http.post(f"/kernels/{name}/interrupt")).status_code == 204
        stopped = await talker.answer(spinning)
        assert stopped.reply["ename"] == "KeyboardInterrupt"
        assert (await talker.answer(waiting)).reply == {"status": "aborted"}
        spinning = await talker.send("execute_request", {"code": "print('on')\nwhile True: pass"})
        await talker.until("stream")
        asked = await talker.ask("interrupt_request", channel="control")
        assert asked.reply == {"status": "ok"}
        assert (await talker.answer(spinning)).reply["ename"] == "KeyboardInterrupt"
        assert (await talker.run("print('well')")).text == "well\n"


async def test_a_restart_forgets_variables_keeps_files_and_the_connection(ada: Served) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        await talker.run("depth = 40; open('kept.txt', 'w').write('here')")
        await talker.send("execute_request", {"code": "print('on')\nwhile True: pass"})
        waiting = await talker.send("execute_request", {"code": "depth"})
        await talker.until("stream")
        restarted = await ada.http.post(f"/kernels/{name}/restart", json={})
        assert restarted.status_code == 200 and restarted.json()["id"] == name
        assert (await talker.answer(waiting)).reply == {"status": "aborted"}
        assert (await talker.run("depth")).reply["ename"] == "NameError"
        assert (await talker.run("print(open('kept.txt').read())")).text == "here\n"


async def test_a_kernel_ends_when_it_is_told_to_shut_down(ada: Served) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        await talker.run("depth = 40")
        again = await talker.ask("shutdown_request", {"restart": True}, channel="control")
        assert again.reply == {"status": "ok", "restart": True}
        assert (await talker.run("depth")).reply["ename"] == "NameError"
        ended = await talker.ask("shutdown_request", {"restart": False}, channel="control")
        assert ended.reply == {"status": "ok", "restart": False}
    assert (await ada.http.get(f"/kernels/{name}")).status_code == 404


async def test_clients_hear_that_a_kernel_is_dead_and_cells_say_so(
    ada: Served, bell: Divingbell
) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        await ada.http.delete(f"/kernels/{name}")
        assert (await talker.until("status"))["content"] == {"execution_state": "dead"}
        assert (await talker.run("1")).reply["ename"] == "SessionClosed"


async def test_all_clients_of_a_kernel_hear_what_it_shows_and_one_gets_the_reply(
    ada: Served,
) -> None:
    name = await ada.kernel()
    async with (
        talking(ada.url, name, ada.token) as first,
        talking(ada.url, name, ada.token, V1) as second,
    ):
        assert (await ada.http.get(f"/kernels/{name}")).json()["connections"] == 2
        assert (await first.run("print('for all')")).text == "for all\n"
        heard = [await second.next() for _ in range(4)]
        assert [each["channel"] for each in heard] == ["iopub"] * 4
        assert heard[2]["content"] == {"name": "stdout", "text": "for all\n"}
        assert (await second.run("1")).reply["status"] == "ok"


async def test_a_cell_goes_on_when_its_client_vanishes(ada: Served) -> None:
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as talker:
        await talker.send(
            "execute_request",
            {"code": "import time; print('on'); time.sleep(0.3); done = 'all the same'"},
        )
        await talker.until("stream")
        talker.socket.transport.abort()

    async def is_alone() -> bool:
        return bool((await ada.http.get(f"/kernels/{name}")).json()["connections"] == 0)

    await until(is_alone, "the kernel has no clients left")
    async with talking(ada.url, name, ada.token) as talker:
        assert (await talker.run("print(done)")).text == "all the same\n"


class Listening:
    """A client that keeps what it is sent."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def send(self, message: Message) -> None:
        self.heard.append(message)

    def replies(self) -> list[dict[str, Any]]:
        return [json.loads(each.content) for each in self.heard if each.channel == "shell"]


def asking(code: str) -> Request:
    content = msgspec.Raw(json.dumps({"code": code}).encode())
    return Request(Header("n", "execute_request"), content, "shell")


async def test_a_cell_waits_for_its_turn_among_all_and_can_be_interrupted_there(
    bell: Divingbell,
) -> None:
    queue = Queue(Room(at_once=1, waiting_of_user=1))
    kernels, whose, client = Kernels(bell, queue), Principal("ada", "", "http"), Listening()
    kernel = await kernels.create(whose)
    other = queue.enter("bob", "his")
    with kernel.opened_by(client):
        await kernel.take(asking("print('not me')"), client)
        await until(lambda: queue.waiting == 1, "the cell waits")
        assert kernel.state == "busy" and not kernel.session.busy
        await kernel.interrupt()
        await until(client.replies, "the cell is answered")
        assert client.replies()[-1]["ename"] == "KeyboardInterrupt"
        assert (queue.waiting, kernel.session.cells) == (0, 0)
        waiting = queue.enter("ada", "another")
        await kernel.take(asking("print('no room')"), client)
        await until(lambda: len(client.replies()) == 2, "the cell is refused")
        assert "1 cell of yours wait" in client.replies()[-1]["evalue"]
        queue.leave(waiting)
        await kernel.take(asking("print('at last')"), client)
        await until(lambda: queue.waiting == 1, "the cell waits")
        queue.leave(other)
        await until(lambda: len(client.replies()) == 3, "the cell has run")
        assert client.replies()[-1]["status"] == "ok"
    assert queue.running == 0
    await kernels.end(whose, kernel.name)


async def test_nothing_runs_for_a_client_once_the_server_ends(bell: Divingbell) -> None:
    queue = Queue(Room())
    kernels, whose, client = Kernels(bell, queue), Principal("ada", "", "http"), Listening()
    kernel = await kernels.create(whose)
    with kernel.opened_by(client):
        async with kernels.running():
            await kernel.take(asking("while True: pass"), client)
            await kernel.take(asking("1"), client)
            await until(lambda: kernel.session.busy, "the cell runs")
    assert client.replies() == [{"status": "aborted"}]
    assert not kernel.session.busy and queue.running == 0
    await kernels.end(whose, kernel.name)


async def test_no_token_stands_in_the_log(ada: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "uvicorn.error"):
        async with talking(ada.url, await ada.kernel(), ada.token) as talker:
            await talker.run("1")
    assert ada.token not in caplog.text


async def test_a_cell_of_a_notebook_and_a_run_of_the_api_come_one_after_the_other(
    ada: Served,
) -> None:
    name = await ada.kernel()
    code = "seen = globals().setdefault('seen', [])\nseen.append('in')\n"
    code += "import time; time.sleep(0.1)\nseen.append('out')\nprint(*seen)"
    where = f"{ada.url}/api/v1/sessions/{name}/execute"
    async with talking(ada.url, name, ada.token) as talker:
        ran, answer = await asyncio.gather(
            talker.run(code),
            ada.http.post(
                where, json={"code": code}, headers={"Authorization": f"Bearer {ada.token}"}
            ),
        )
    shown = sorted([ran.text, answer.json()["output"]])
    assert shown == ["in out\n", "in out in out\n"]
    assert ran.of("execute_input")[0]["execution_count"] != answer.json()["cell"]
