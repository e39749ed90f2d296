"""What leaves over the API and to Jupyter's clients: a value of each kind in every place, and a
search through all that was sent. For MCP see `tests/surfaces/mcp/test_privacy_wire.py`."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect

from divingbell import Divingbell, ToolFailed
from divingbell.agent.scripted import Says
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from tests.surfaces.http.jupyter.talking import V1, Talker
from tests.surfaces.http.serving import ANNE, Site, Talking, served
from tests.surfaces.mcp import canaries
from tests.surfaces.mcp.canaries import VALUES
from tests.waiting import PATIENCE, until

API = "/api/v1"
HELD = "is held back"
BEGIN = f"""
import sys, warnings, pandas, os
from servers import host
found = host.find()
kinds = {list(VALUES)!r}
texts = dict(zip(kinds, found["texts"]))
whole = "\\n\\n".join(texts.values())
"""
SHOWN = {
    "stdout": "print(whole)",
    "stderr": "print(whole, file=sys.stderr)",
    "letters": "for letter in whole: print(letter, end='', flush=True)",
    "raw": "os.write(1, whole.encode())",
    "shell": "open('x', 'w').write(whole)\n!cat x",
    "html": (
        "import html\npage = html.escape(whole)\n"
        "display({'text/html': page, 'text/plain': page}, raw=True)"
    ),
    "json": "from IPython.display import JSON\ndisplay(JSON({t: [t] for t in texts.values()}))",
    "value": "{text: [text] for text in texts.values()}",
    "error": "raise ValueError(whole)",
    "chained": (
        "try: raise KeyError(whole)\nexcept KeyError as error: raise OSError(whole) from error"
    ),
    "exit": "sys.exit(whole)",
    "frame": "pandas.DataFrame({'text': list(texts.values())})",
    "tool": "host.find()",
    "failing": "host.fail()",
    "echoed": "host.echo(what=whole)",
    "update": "h = display('x', display_id=True)\nh.update({'text/plain': whole}, raw=True)",
}
"""Cells that show a value of each kind."""
QUIETLY = {
    "png": "display({'image/png': b'\\x89PNG\\xff\\x00' + whole.encode()}, raw=True)",
    "svg": "display({'image/svg+xml': f'<svg><text>{whole}</text></svg>'}, raw=True)",
    "split": "half = len(whole) // 2\nprint(whole[:half], end='')\ndisplay(1)\nprint(whole[half:])",
    "variables": "".join(f"v{n} = texts[kinds[{n}]]\n" for n in range(len(VALUES))),
    "attributes": "class Box: pass\nbox = Box()\nfor text in texts.values(): setattr(box, text, 1)",
    "files": (
        "for text in texts.values():\n"
        "    name = text.replace('/', '-').replace('\\n', ' ')[:200] + '.txt'\n"
        "    open(name, 'w').write(text)"
    ),
}
READ = ("run", "read")


def _tools() -> list[Any]:
    def find() -> dict[str, Any]:
        """Return people."""
        return {"texts": list(canaries.TEXTS.values()), "people": canaries.PEOPLE}

    def fail() -> str:
        """Fail."""
        raise ToolFailed("\n\n".join(canaries.TEXTS.values()))

    def echo(what: str) -> str:
        """Say it again."""
        return what

    return [find, fail, echo]


class Recorder(httpx2.AsyncHTTPTransport):
    """Keeps every byte of the answers, headers too."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        for name, value in answer.headers.raw:
            self.sent += name + b": " + value + b"\n"
        body = answer.stream
        recorder = self

        class Kept(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                assert isinstance(body, httpx2.AsyncByteStream)
                async for piece in body:
                    recorder.sent += piece
                    yield piece

            async def aclose(self) -> None:
                assert isinstance(body, httpx2.AsyncByteStream)
                await body.aclose()

        answer.stream = Kept()
        return answer


@contextlib.asynccontextmanager
async def visiting(
    privacy: str = "personal", scopes: tuple[Any, ...] = READ
) -> AsyncIterator[tuple[httpx2.AsyncClient, Recorder, Site, Talking, Divingbell]]:
    script, recorder = Talking(), Recorder()
    settings: dict[str, Any] = {"privacy": privacy, "audit": "on", "skills": "on", "pool": 0}
    settings["agent"] = {"mode": "code"}
    tokens = Tokens({"anne": hash_of(ANNE)}, frozenset(scopes))
    async with (
        Divingbell(tools=_tools(), **settings) as bell,
        served(bell, tokens, script.made) as site,
        httpx2.AsyncClient(
            base_url=site.url,
            headers={"Authorization": f"Bearer {ANNE}"},
            timeout=PATIENCE,
            transport=recorder,
        ) as client,
    ):
        yield client, recorder, site, script, bell


class Visit:
    """One client's way through all operations."""

    def __init__(self, client: httpx2.AsyncClient, script: Talking) -> None:
        self.client, self.script = client, script
        self.said: dict[str, str] = {}

    async def ask(self, what: str, method: str, path: str, **more: Any) -> httpx2.Response:
        answer = await self.client.request(method, API + path, **more)
        self.said[what] = self.said.get(what, "") + answer.text
        return answer

    async def run(self, what: str, code: str, session: str = "work", **more: Any) -> None:
        streams = {"Accept": "text/event-stream"}
        path, given = f"/sessions/{session}/execute", {"code": code, **more}
        await self.ask(what, "POST", path, json=given)
        await self.ask(f"{what} as events", "POST", path, json=given, headers=streams)

    async def everything(self) -> None:
        listening = asyncio.create_task(self._listen())
        await self.ask("begin", "POST", "/sessions/work/execute", json={"code": BEGIN})
        for name, code in (SHOWN | QUIETLY).items():
            await self.run(name, code)
        await self.ask("once", "POST", "/execute", json={"code": BEGIN + "print(whole)"})
        await self.executions()
        await self.session()
        await self.files()
        await self.conversation()
        for path in ("/me", "/ledger", "/stats", "/sessions", "/skills", "/mcp/servers"):
            await self.ask(path, "GET", path)
        await self.ask("search", "GET", "/mcp/tools/search", params={"query": "people"})
        await self.ask("tool", "GET", "/mcp/tools/host/find")
        await self.audit()
        ended = "execution.ended"
        await until(lambda: ended in self.said.get("all events", ""), "events are heard")
        listening.cancel()
        await asyncio.wait([listening])

    async def _listen(self) -> None:
        async with self.client.stream("GET", f"{API}/events") as answer:
            async for piece in answer.aiter_text():
                self.said["all events"] = self.said.get("all events", "") + piece

    async def executions(self) -> None:
        listed = await self.ask("executions", "GET", "/executions", params={"limit": 200})
        for each in listed.json()["items"]:
            path = f"/executions/{each['id']}"
            await self.ask("execution", "GET", path)
            await self.ask("events", "GET", f"{path}/events")

    async def session(self) -> None:
        await self.ask("variables", "GET", "/sessions/work/variables")
        for code in ("box.", "open('", "texts['", "kin"):
            given = {"code": code, "position": len(code)}
            await self.ask("complete", "POST", "/sessions/work/complete", json=given)

    async def files(self) -> None:
        cursor: dict[str, str] = {}
        while True:
            params = {"limit": "2", **cursor}
            answer = await self.ask("files", "GET", "/sessions/work/files", params=params)
            if not (after := answer.json()["next"]):
                break
            cursor = {"cursor": after}
        for item in answer.json()["items"]:
            path = f"/sessions/work/files/{item['path']}"
            await self.ask("content", "GET", path)
            await self.ask("removed", "DELETE", path)
        for name in ("x", "none.txt"):
            await self.ask("content", "GET", f"/sessions/work/files/{name}")
            await self.ask("content", "HEAD", f"/sessions/work/files/{name}")

    async def conversation(self) -> None:
        made = await self.ask("talk", "POST", "/conversations", json={})
        talk = f"/conversations/{made.json()['id']}"
        # The model is a script: it writes what it can have read, and code that shows the rest.
        self.script.lines += [Says("Looking.", BEGIN + "print(whole)\nwhole"), Says("Done.")]
        await self.ask("message", "POST", f"{talk}/messages", json={"text": "who is it?"})
        await self.ask("talk", "GET", talk)
        await self.ask("talk events", "GET", f"{talk}/events", params={"after": 0})
        await self.ask("talks", "GET", "/conversations")

    async def audit(self) -> None:
        await asyncio.sleep(0)
        params: dict[str, Any] = {"limit": 200}
        while True:
            answer = (await self.ask("audit", "GET", "/audit", params=params)).json()
            if not answer.get("next"):
                break
            params["cursor"] = answer["next"]


async def test_no_value_leaves_over_the_api() -> None:
    async with visiting() as (client, recorder, _, script, _):
        visit = Visit(client, script)
        await visit.everything()
    assert len(recorder.sent) > 100_000, "all of it was recorded"
    assert canaries.ALL(bytes(recorder.sent)) == {}, "values have left"
    missing = {
        what: set(VALUES) - canaries.kinds_in(visit.said[what])
        for name in SHOWN
        for what in (name, f"{name} as events")
    }
    assert {what: kinds for what, kinds in missing.items() if kinds} == {}
    for what in ("once", "execution", "events", "message"):
        assert set(VALUES) == canaries.kinds_in(visit.said[what]), visit.said[what][:3000]
    for what in ("variables", "complete", "files", "audit", "talk events"):
        assert canaries.kinds_in(visit.said[what]), what
    assert HELD in visit.said["png"] and HELD in visit.said["svg"]
    assert "this takes `reveal`" in visit.said["content"]


async def test_the_search_finds_what_there_is() -> None:
    """With secrets alone personal data is there, and with the scope `reveal` files are."""
    async with visiting("secrets", tuple(SCOPES)) as (client, recorder, _, script, _):
        visit = Visit(client, script)
        await visit.ask("begin", "POST", "/sessions/work/execute", json={"code": BEGIN})
        for name, code in SHOWN.items():
            await visit.run(name, code)
    assert canaries.ONLY_SECRETS(bytes(recorder.sent)) == {}
    assert canaries.ONLY_PERSONAL(bytes(recorder.sent)).keys() == canaries.PERSONAL


@pytest.mark.parametrize("form", [None, V1])
async def test_no_value_leaves_to_clients_of_jupyter(form: Any) -> None:
    sent = bytearray()

    async with visiting() as (client, recorder, site, _, _):
        made = await client.post("/jupyter/api/kernels", json={"name": "python3"})
        kernel = made.json()["id"]
        address = f"ws://127.0.0.1:{site.port}/jupyter/api/kernels/{kernel}/channels?token={ANNE}"
        forms = [form] if form else None
        async with connect(address, subprotocols=forms, max_size=None) as socket:
            recv = socket.recv

            async def kept(*given: Any, **more: Any) -> Any:
                frame = await recv(*given, **more)
                sent.extend(frame if isinstance(frame, bytes) else frame.encode())
                return frame

            socket.recv = kept  # type: ignore[method-assign]
            talker = Talker(socket)
            assert talker.is_v1 is (form == V1)
            await talker.run(BEGIN)
            said = {}
            for name, code in (SHOWN | QUIETLY).items():
                answer = await talker.run(code)
                said[name] = json.dumps([answer.reply, answer.published])
            for code in ("box.", "open('", "texts['"):
                given = {"code": code, "cursor_pos": len(code)}
                await talker.ask("complete_request", given)
            for code in ("texts", "whole", "host.find"):
                given = {"code": code, "cursor_pos": len(code), "detail_level": 1}
                await talker.ask("inspect_request", given)
            await talker.ask("history_request", {"hist_access_type": "tail", "n": 100})
            await talker.ask("kernel_info_request")
            await talker.run("1", user_expressions={"whole": "whole"})
        for path in ("/kernels", f"/kernels/{kernel}", "/sessions", "/contents", "/kernelspecs"):
            await client.get(f"/jupyter/api{path}")
    assert len(sent) > 10_000, "all of it was recorded"
    assert canaries.ALL(bytes(sent)) == {} and canaries.ALL(bytes(recorder.sent)) == {}
    missing = {name: set(VALUES) - canaries.kinds_in(said[name]) for name in SHOWN}
    assert {name: kinds for name, kinds in missing.items() if kinds} == {}
