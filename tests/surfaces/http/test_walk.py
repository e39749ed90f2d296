"""A walk over all operations that the description has: what is another's is not there, and a token
meets only the operations of its scopes. An operation that is new is walked over as well; where it
takes something that is not known here, the test fails until it is."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.agent.scripted import Says
from divingbell.surfaces.auth import SCOPES, ScopeWord, Tokens, hash_of
from divingbell.surfaces.http.visitor import Visitor
from divingbell.surfaces.token_store import TokenStore
from tests.surfaces.http.serving import ANNE, BERT, Site, Talking, heard, served
from tests.waiting import until

API = "/api/v1"
MARK = "oyster-5391"
"""Stands in all that is Anne's, and Bert never says it."""
SKILL = f'''
def pearl():
    """Finds one.

    >>> pearl()
    """
    return "{MARK}"

save_skill("pearl", pearl, "Finds one: {MARK}")
'''
ASKING = f"from servers.host import mail\nmail({MARK!r})"


def mail(text: str) -> str:
    """Mail somebody."""
    return text


@dataclass(frozen=True)
class Names:
    """The names of what is somebody's, or of what is nobody's."""

    session: str
    execution: str
    approval: str
    conversation: str
    question: str
    skill: str
    file: str
    user: str

    def in_path(self, path: str, name: str) -> str:
        noun = path.removeprefix(f"{API}/").partition("/")[0]
        return {
            ("sessions", "id"): self.session,
            ("sessions", "path"): self.file,
            ("executions", "id"): self.execution,
            ("approvals", "id"): self.approval,
            ("conversations", "id"): self.conversation,
            ("skills", "name"): self.skill,
            ("mcp", "server"): "host",
            ("mcp", "tool"): "nothing",
        }[noun, name]

    def body(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What is to be given, and whatever may name something."""
        known = {
            "code": "print(dir())",
            "position": 0,
            "word": "yes",
            "text": "What do you see?",
            "id": self.session if "labels" in schema["properties"] else self.question,
            "action": "accept",
            "session": self.session,
        }
        needed = {name: known[name] for name in schema.get("required", ())}
        named = {"id", "session"} & schema["properties"].keys()
        return needed | {name: known[name] for name in named}

    def query(self, names: set[str]) -> dict[str, str]:
        known = {"session": self.session, "user": self.user}
        return {name: value for name, value in known.items() if name in names}


NOBODYS = Names(
    "coral",
    "x-" + "0" * 24,
    "999999",
    "c-" + "0" * 16,
    "q-" + "0" * 16,
    "coral",
    "coral.txt",
    "carl",
)


@dataclass(frozen=True)
class Asked:
    """One operation, as the description has it."""

    method: str
    path: str
    told: dict[str, Any]
    schemas: dict[str, Any]

    async def by(self, client: httpx2.AsyncClient, names: Names) -> tuple[int, str]:
        """Ask for it; return the status and the answer, of a stream without an end its start."""
        path = re.sub(r"{(\w+)}", lambda found: names.in_path(self.path, found[1]), self.path)
        given: dict[str, Any] = {}
        content = self.told.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            named = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
            given["json"] = names.body(self.schemas[named])
        elif content:
            given["content"] = b"mine"
        known = {each["name"] for each in self.told["parameters"] if each["in"] == "query"}
        given["params"] = names.query(known)
        async with client.stream(self.method, path, **given) as answer:
            if self.told["operationId"] == "events.events" and answer.status_code == 200:
                return answer.status_code, str(await anext(heard(answer)))
            return answer.status_code, (await answer.aread()).decode()


async def _operations(client: httpx2.AsyncClient) -> list[Asked]:
    told = (await client.get("/openapi.json")).json()
    schemas = told["components"]["schemas"]
    found = [
        Asked(method.upper(), path, each, schemas)
        for path, methods in told["paths"].items()
        for method, each in methods.items()
    ]
    return sorted(found, key=lambda each: each.method == "DELETE")  # at the end


@pytest.fixture(scope="module")
def script() -> Talking:
    return Talking()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    return TokenStore(tmp_path_factory.mktemp("tokens") / "tokens.toml")


@pytest.fixture(scope="module")
async def site(
    script: Talking, store: TokenStore, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("walk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        async with Divingbell(
            pool=1,
            preload=[],
            interrupt_grace=0.5,
            skills="on",
            audit="on",
            audit_log=_log(folder),
            policy={"rules": [{"tools": ["host.mail"], "action": "ask", "reason": MARK}]},
            tools=[mail],
        ) as bell:
            hashes = {"anne": hash_of(ANNE), "bert": hash_of(BERT)}
            # All but `admin`, which is there to see what is others'.
            tokens = Tokens(hashes, frozenset(SCOPES) - {"admin"}, store)
            async with served(bell, tokens, script.made) as site:
                yield site


def _log(folder: Path) -> dict[str, str]:
    return {"folder": str(folder / "audit"), "heads": str(folder / "heads")}


async def _ran(anne: httpx2.AsyncClient, code: str) -> dict[str, Any]:
    answer = await anne.post(f"{API}/sessions/pearl/execute", json={"code": code})
    result: dict[str, Any] = answer.json()
    assert result["status"] == "ok", result
    return result


@contextlib.asynccontextmanager
async def _anne_has_things(anne: httpx2.AsyncClient, script: Talking) -> AsyncIterator[Names]:
    """A session with a variable, a file and a skill, an execution, a conversation whose code waits
    for a person, and so an approval that is pending."""
    labels = {"id": "pearl", "labels": {"what": MARK}}
    assert (await anne.post(f"{API}/sessions", json=labels)).status_code == 201
    ran = await _ran(anne, f"deep = {MARK!r}; deep")
    await _ran(anne, SKILL)
    await anne.put(f"{API}/sessions/pearl/files/{MARK}.txt", content=MARK.encode())
    made = (await anne.post(f"{API}/conversations", json={"mode": "code"})).json()
    script.lines += [Says(f"I have a {MARK}.", ASKING), Says(f"That was a {MARK}.")]
    talk = f"{API}/conversations/{made['id']}"
    async with anne.stream("POST", f"{talk}/messages", json={"text": MARK}) as answer:
        async for event in heard(answer):
            if event.name == "approval":
                break
        question = event.data["id"]
        running = asyncio.create_task(
            anne.post(f"{API}/sessions/waiting/execute", json={"code": ASKING})
        )
        pending: list[Any] = []

        async def waits() -> bool:
            pending[:] = (await anne.get(f"{API}/approvals")).json()["items"]
            return bool(pending)

        await until(waits, "a call waits for a person")
        try:
            yield Names(
                session="pearl",
                execution=ran["execution"],
                approval=pending[0]["id"],
                conversation=made["id"],
                question=question,
                skill="pearl",
                file=f"{MARK}.txt",
                user="anne",
            )
        finally:
            await anne.post(f"{talk}/cancel")
            for each in (await anne.get(f"{API}/approvals")).json()["items"]:
                await anne.post(f"{API}/approvals/{each['id']}", json={"word": "no"})
            await running


async def _all_of(anne: httpx2.AsyncClient, names: Names) -> dict[str, Any]:
    """What Anne sees of what is hers, but for what changes by itself."""
    session = (await anne.get(f"{API}/sessions/pearl")).json()
    for name in ("cpu_seconds", "memory", "memory_peak", "expires_at"):
        del session[name]
    found = {"session": session}
    for path in (
        "sessions/pearl/variables",
        f"sessions/pearl/files/{names.file}",
        "executions",
        f"executions/{names.execution}",
        "approvals",
        f"conversations/{names.conversation}",
        "conversations",
        f"skills/{names.skill}",
    ):
        answer = await anne.get(f"{API}/{path}")
        assert answer.status_code == 200, (path, answer.text)
        found[path] = answer.text
    assert MARK in str(found)
    return found


def _without(text: str, names: Names) -> str:
    """An answer without the names that were given, and without what each answer has its own of."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]+|x-[0-9a-f]{24}|c-[0-9a-f]{16,}", "…", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[^\"]*|\d+\.\d+|\d+", "…", text)
    for name in sorted(vars(names).values(), key=len, reverse=True):
        text = text.replace(name, "…")
    return text


async def test_what_is_anothers_is_not_there_whatever_is_asked_for(
    anne: httpx2.AsyncClient, bert: httpx2.AsyncClient, script: Talking
) -> None:
    async with _anne_has_things(anne, script) as hers, bert.stream("GET", f"{API}/events") as page:
        before = await _all_of(anne, hers)
        asked = await _operations(bert)
        assert len(asked) > 40
        for each in asked:
            status, found = await each.by(bert, hers)
            status_of_nothing, nothing = await each.by(bert, NOBODYS)
            where = f"{each.method} {each.path}: {found}"
            assert status == status_of_nothing, (where, nothing)
            assert MARK not in found.replace(hers.file, ""), where
            if status >= 400:
                assert _without(found, hers) == _without(nothing, NOBODYS), where
            elif "{" not in each.path:  # a list, or something that he has made
                assert not any(name in found for name in (hers.execution, hers.conversation)), where
            if each.method == "GET" and each.path.endswith(("/{id}", "/{name}")):
                is_his = each.path == f"{API}/sessions/{{id}}"  # of the same name, made on the walk
                assert status == (200 if is_his else 404), where
        assert await _all_of(anne, hers) == before
        told = ""
        async for event in heard(page):
            told += str(event)
            if event.name == "session.ended":
                break
        assert MARK not in told and hers.execution not in told and "approval" not in told


def _may(scopes: frozenset[ScopeWord], need: ScopeWord) -> bool:
    return Visitor("anne", scopes).may(need)


async def test_a_token_meets_only_the_operations_of_its_scopes(
    site: Site, store: TokenStore, script: Talking
) -> None:
    script.lines.clear()
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for scope in SCOPES:
            token, _ = store.create("carl", frozenset({scope}))
            clients[scope] = await stack.enter_async_context(site.client(token))
        for each in await _operations(clients["read"]):
            need: ScopeWord = each.told["x-scope"]
            for scope, client in clients.items():
                status, found = await each.by(client, NOBODYS)
                refused = status == 403 and f"takes the scope `{need}`" in found
                assert refused != _may(frozenset({scope}), need), (scope, each.path, found)
        for path, need in (("/metrics", "metrics"), ("/mcp", "run")):
            for scope, client in clients.items():
                answer = (
                    await client.post(path, json={}) if path == "/mcp" else await client.get(path)
                )
                assert (answer.status_code == 403) == (scope != need), (scope, path, answer.text)
