"""Conversations that come back, with real sessions and a real vault; the model is a script."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.agent import keeping, kept_files, kept_log
from divingbell.agent.agent import INTERRUPTED, Agent
from divingbell.agent.events import AgentEvent, CellEvent, Done, Notice
from divingbell.agent.history import Answered, Asked, Replied
from divingbell.agent.keeper import FULL, Keeper
from divingbell.agent.keeping import Conversation, Conversations
from divingbell.agent.kept_log import ENDED, Lines
from divingbell.agent.mode_choice import ModeChoice
from divingbell.agent.names import bound_in
from divingbell.agent.resuming import Resumed, gone_names, resume
from divingbell.agent.scripted import Line, Says, ScriptedModel
from divingbell.border.vault.seal import Seal
from divingbell.errors import ConfigError, InvalidInput
from divingbell.settings.privacy import Privacy

pytestmark = pytest.mark.anyio
KEY = bytes(range(32))
LINES = Lines(Seal(KEY), "talk")
WRITES = (Says("", "open('f', 'w').write('1')"), Says("ok"))


@pytest.fixture
def kept(tmp_path: Path) -> Conversations:
    return Conversations(tmp_path / "kept", lambda: KEY)


@pytest.fixture(scope="module")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=1) as made:
        yield made


@contextlib.asynccontextmanager
async def keeper_of(
    bell: Divingbell, conversation: Conversation, *lines: Line
) -> AsyncIterator[Keeper]:
    """A new conversation."""
    async with bell.session(conversation.name) as session:
        agent = Agent(session, ScriptedModel(lines), "You are tested.")
        yield Keeper(agent, conversation, bell.border)
    conversation.close()


@contextlib.asynccontextmanager
async def resumed(
    bell: Divingbell, conversation: Conversation, *lines: Line
) -> AsyncIterator[tuple[Keeper, Resumed]]:
    """One that goes on."""
    async with bell.session(conversation.name) as session:
        told = await resume(conversation, session, bell.border)
        model = ScriptedModel(lines)
        history = [*conversation.entries(model.name), told.entry]
        agent = Agent(session, model, "You are tested.", history=history)
        yield Keeper(agent, conversation, bell.border), told
    conversation.close()


async def all_of(keeper: Keeper, text: str = "do it") -> list[AgentEvent]:
    return [event async for event in keeper.ask(text)]


async def test_a_conversation_comes_back_with_its_words_and_files(
    bell: Divingbell, kept: Conversations
) -> None:
    code = "open('sub.txt', 'w').write('x' * 3_000_000)\nopen('empty', 'w')\nn = 41\nprint(n + 1)"
    begun = kept.begin()
    async with keeper_of(bell, begun, Says("Adding.", code), Says("It is 42.")) as keeper:
        await all_of(keeper, "what is it?")
        said = list(keeper.agent.history)
    async with resumed(bell, kept.load(), Says("", "print(len(open('sub.txt').read()))")) as (
        again,
        told,
    ):
        assert again.agent.history[:-1] == said
        with contextlib.suppress(Exception):  # the script ends
            await all_of(again, "and now?")
        answers = [entry for entry in again.agent.history if isinstance(entry, Answered)]
        assert answers[-1].text == "3000000\n"
        assert await again.agent.session.files.get("empty") == b""
    assert "2 files back in /workspace" in told.text
    assert "n (int), made by cell 1: n = 41" in told.text
    assert told.text.splitlines()[-1] in told.entry.text


async def test_nothing_is_run_again_by_itself(bell: Divingbell, kept: Conversations) -> None:
    code = "open('count', 'a').write('x')\ndone = True"
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok")) as keeper:
        await all_of(keeper)
    async with resumed(bell, kept.load(), Says("ok")) as (again, _):
        await all_of(again, "hello")
        session = again.agent.session
        assert await session.files.get("count") == b"x"
        assert not [each for each in await session.variables() if each.name == "done"]
        assert session.cells == 0


async def test_it_can_go_on_several_times(bell: Divingbell, kept: Conversations) -> None:
    async with keeper_of(bell, kept.begin(), Says("", "a = 1"), Says("one")) as keeper:
        await all_of(keeper, "first")
    async with resumed(bell, kept.load(), Says("", "b = 2"), Says("two")) as (again, _):
        await all_of(again, "second")
    last = kept.load()
    assert [name.name for name in gone_names(last.written)] == ["b"], "a was gone before"
    assert last.written.cells.keys() and len(last.written.cells) == 2
    asked = [entry.text for entry in last.entries() if isinstance(entry, Asked)]
    assert asked[0] == "first" and "new session" in asked[1] and asked[2].startswith("second")
    last.close()


async def test_the_mode_that_was_chosen_comes_back(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    direct, code = ModeChoice("direct", "few tools", "half"), ModeChoice("code")
    begun = kept.begin()
    async with keeper_of(bell, begun, Says("one")) as keeper:
        keeper.agent.mode = direct
        await all_of(keeper, "first")
    for _ in range(2):  # the log is written anew each time
        again = kept.load()
        assert again.mode == direct
        again.close()
    async with resumed(bell, kept.load()) as (keeper, _):
        keeper.agent.mode = code
        await keeper.save()  # it was changed, and nothing was asked since
    last = kept.load()
    assert last.mode == code
    last.log.add({"mode": "of a later version"})
    last.close()
    unknown = kept.load()
    assert unknown.mode is None and len(unknown.entries()) == 3
    unknown.close()


async def test_only_the_owner_can_read_what_is_kept(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    async with keeper_of(
        bell, kept.begin(), Says("", "open('f', 'w').write('1')"), Says("ok")
    ) as k:
        await all_of(k)
    modes = {stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in (tmp_path / "kept").rglob("*")}
    assert modes == {0}
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700


async def test_what_was_taken_back_does_not_come_back(
    bell: Divingbell, kept: Conversations
) -> None:
    async with keeper_of(bell, kept.begin(), Says("one"), Says("two"), Says("three")) as keeper:
        await all_of(keeper, "first")
        await all_of(keeper, "second")
        del keeper.agent.history[2:]
        await keeper.save()
        await all_of(keeper, "third")
    texts = [entry.text for entry in kept.load().entries()]
    assert texts == ["first", "one", "third", "three"]


async def test_what_was_forgotten_is_gone_from_the_disk_and_files_stay(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    begun = kept.begin()
    lines = (*WRITES, Says("still here"))
    async with keeper_of(bell, begun, *lines) as keeper:
        await all_of(keeper, "an early secret")
        assert await keeper.forget() == []
        assert keeper.agent.history == []
        log = tmp_path / "kept" / begun.name / "log.jsonl"
        assert log.stat().st_size < 100, "a line of the variables, of which there are none"
        assert Lines(Seal(KEY), begun.name).parsed(log.read_bytes()).entries == []
        await all_of(keeper, "a later question")
    async with resumed(bell, kept.load()) as (again, told):
        first = again.agent.history[0]
        assert isinstance(first, Asked) and first.text.startswith("a later question")
        assert "1 file back in /workspace" in told.text


async def test_one_of_which_all_was_forgotten_can_be_removed(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    begun = kept.begin()
    async with keeper_of(bell, begun, *WRITES) as keeper:
        await all_of(keeper)
        await keeper.forget()
    assert kept.list() == []
    kept.remove(begun.name)
    assert list((tmp_path / "kept").iterdir()) == []


async def test_outputs_that_were_shortened_for_the_model_stay_whole(
    bell: Divingbell, kept: Conversations
) -> None:
    lines = [Says("", f"print('word ' * 1_000, {n})") for n in range(12)]
    async with keeper_of(bell, kept.begin(), *lines, Says("ok")) as keeper:
        model = keeper.agent.model
        assert isinstance(model, ScriptedModel)
        model.window = 12_000
        keeper.agent = Agent(keeper.agent.session, model, "You are tested.")
        await all_of(keeper)
        assert any("no longer shown" in entry.text for entry in keeper.agent.history)
    answers = [entry for entry in kept.load().entries() if isinstance(entry, Answered)]
    assert len(answers) == 12
    assert not [entry for entry in answers if "no longer shown" in entry.text]


async def test_an_answer_that_was_interrupted_is_kept_so(
    bell: Divingbell, kept: Conversations
) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    async with keeper_of(bell, kept.begin(), Says("", code)) as keeper:
        asking = keeper.ask("go")
        async for event in asking:
            if isinstance(event, CellEvent) and "begun" in event.event.text:
                break
        await asking.aclose()
    last = kept.load().entries()[-1]
    assert isinstance(last, Answered) and last.text == f"begun\n{INTERRUPTED}"


KILLED = """
import asyncio, sys
from pathlib import Path
from divingbell import Divingbell
from divingbell.agent.agent import Agent
from divingbell.agent.keeper import Keeper
from divingbell.agent.keeping import Conversations
from divingbell.agent.scripted import Says, ScriptedModel

CODE = "import time\\nx = 1\\nprint('shown', flush=True)\\ntime.sleep(600)"

async def main():
    kept = Conversations(Path(sys.argv[1]), lambda: bytes(range(32))).begin()
    async with Divingbell(pool=0) as bell, bell.session(kept.name) as session:
        agent = Agent(session, ScriptedModel([Says("Some words.", CODE)]), "")
        async for event in Keeper(agent, kept, bell.border).ask("go on"):
            print(event, flush=True)

asyncio.run(main())
"""


async def test_after_kill_9_what_was_shown_until_then_is_there(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(tmp_path / "kept"), stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    async with asyncio.timeout(60):
        async for line in program.stdout:
            if b"shown\\n" in line and b"CellEvent" in line:
                break
    [info] = kept.list()
    assert info.is_open and info.title == "go on"
    with pytest.raises(InvalidInput, match="open in another program"):
        kept.load()
    os.kill(program.pid, signal.SIGKILL)
    await program.wait()
    loaded = kept.load()
    asked, replied, answered = loaded.entries()
    assert isinstance(asked, Asked) and asked.text == "go on"
    assert isinstance(replied, Replied) and replied.text == "Some words." and replied.calls
    assert isinstance(answered, Answered) and answered.text == f"shown\n{ENDED}"
    async with resumed(bell, loaded, Says("ok")) as (again, told):
        assert "x, made by cell 1: x = 1" in told.text
        assert (await all_of(again, "well?"))[-1] == Done("answered", "ok", again.agent.total, 1)


@pytest.mark.parametrize(
    ("lines", "entries"),
    [
        ([{"asking": "q"}], [Asked("q")]),
        ([{"asking": "q"}, {"asked": "q", "images": []}], [Asked("q")]),
        (
            [{"asked": "q", "images": []}, {"text": "so "}, {"text": "far"}],
            [Asked("q"), Replied(f"so far{ENDED}")],
        ),
        (
            [{"asked": "q", "images": []}, {"asked": "r", "images": []}, {"forget": 1}],
            [Asked("q")],
        ),
    ],
)
async def test_what_was_begun_is_marked(lines: list[dict[str, Any]], entries: list[object]) -> None:
    raw = b"".join(LINES.encoded(line) for line in lines)
    written = LINES.parsed(raw + LINES.encoded({"asked": "half a line", "images": []})[:-30])
    written.settle()
    assert written.entries == entries


@pytest.mark.parametrize(
    "line",
    [b"\xff", b"[" * 100_000, b'{"asked": 1, "images": []}', b'{"names": 3}', b'{"forget": "x"}',
     b'{"answered": "a"}', b'{"cell": "1", "text": "", "status": "odd", "images": []}'],
)  # fmt: skip
async def test_a_damaged_log_is_read_as_far_as_it_is_whole(line: bytes) -> None:
    good = LINES.encoded({"asked": "q", "images": []})
    sealed = b""
    with contextlib.suppress(ValueError, RecursionError):
        sealed = LINES.encoded(json.loads(line))
    for bad in filter(None, (line + b"\n", sealed, good[:-30] + b"\n")):
        assert LINES.parsed(good + bad + good).entries == [Asked("q")]


async def test_a_log_from_before_they_were_sealed_is_read_and_sealed(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    begun = kept.begin()
    begun.log.add({"asking": "q"})
    begun.close()
    log = tmp_path / "kept" / begun.name / "log.jsonl"
    log.write_bytes(b'{"model":"m","version":1}\n{"asked":"where is Sayrefitz","images":[]}\n')
    loaded = kept.load()
    assert loaded.entries() == [Asked("where is Sayrefitz")]
    assert b"Sayrefitz" not in log.read_bytes()
    loaded.close()


@pytest.mark.parametrize("privacy", ["off", "secrets", "personal"])
async def test_nothing_that_was_said_is_readable_on_the_disk_whatever_privacy_says(
    kept: Conversations, tmp_path: Path, privacy: Privacy
) -> None:
    said = ("Sayrefitz", "anna@example.org", "4111 1111 1111 1111", "Rue de Lappe")
    text = " and ".join(said)
    async with Divingbell(pool=0, privacy=privacy) as each:
        begun = kept.begin()
        lines = (Says(f"for {text}", f"print({text!r})"), Says(f"Done: {text}."))
        async with keeper_of(each, begun, *lines) as keeper:
            await all_of(keeper, f"write to {text}")
        for path in (path for path in (tmp_path / "kept").rglob("*") if path.is_file()):
            content = path.read_bytes()
            assert not any(value.encode() in content for value in said), path.name
        async with resumed(each, kept.load(), Says("again")) as (again, _):
            words = " ".join(e.text for e in again.agent.history if isinstance(e, Replied))
            assert "Sayrefitz" in words, "what comes back is what was said"
            assert ("anna@example.org" in words) is (privacy != "personal")
            await all_of(again)


async def test_a_log_that_is_full_says_so_and_the_talk_goes_on(
    bell: Divingbell, kept: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_log, "MOST_LOG", 400)
    async with keeper_of(bell, kept.begin(), Says("word " * 200), Says("two")) as keeper:
        events = await all_of(keeper) + await all_of(keeper)
    assert [event for event in events if isinstance(event, Notice)] == [Notice(FULL)]
    assert [event.text for event in events if isinstance(event, Done)] == ["word " * 200, "two"]


async def test_files_that_are_too_large_are_left_out_and_named(
    bell: Divingbell, kept: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MOST_BYTES", 1000)
    code = "open('a', 'w').write('x' * 2000)\nopen('b', 'w').write('small')"
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok")) as keeper:
        events = await all_of(keeper)
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "not kept, because there is no room for so much: a"
    ]
    assert [file.path for file in (await kept.load().files()).kept] == ["b"]


async def test_files_that_have_not_changed_are_not_written_again(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    code = "open('a', 'w').write('1')"
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok"), Says("ok")) as keeper:
        await all_of(keeper)
        before = _stored(tmp_path)
        await all_of(keeper)
        assert _stored(tmp_path) == before
    async with resumed(bell, kept.load(), Says("ok"), Says("", "import os\nos.remove('a')")) as (
        again,
        _,
    ):
        await all_of(again)
        assert _stored(tmp_path) == before
        with contextlib.suppress(Exception):
            await all_of(again)
    assert (await kept.load().files()).kept == []
    assert set(_stored(tmp_path)) == {"index"}


def _stored(tmp_path: Path) -> dict[str, int]:
    [folder] = (tmp_path / "kept").glob("*/files")
    return {path.name: path.stat().st_ino for path in folder.iterdir() if path.name != "index"} or {
        path.name: 0 for path in folder.iterdir()
    }


async def test_files_that_a_session_has_no_room_for_stay_kept(
    bell: Divingbell, kept: Conversations
) -> None:
    code = "for name in 'ab': open(name, 'w').write(name * 3_000_000)"
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok")) as keeper:
        await all_of(keeper)
    loaded = kept.load()
    async with bell.session(loaded.name, disk=4_000_000) as small:
        told = await resume(loaded, small, bell.border)
        assert "files have not come back" in told.text
        agent = Agent(small, ScriptedModel([Says("ok")]), "", history=loaded.entries())
        await all_of(Keeper(agent, loaded, bell.border))
    loaded.close()
    async with resumed(bell, kept.load(), Says("ok")) as (again, told):
        assert "2 files back" in told.text
        assert len(await again.agent.session.files.list()) == 2


@pytest.mark.parametrize("harm", ["flip", "cut", "swap", "remove"])
async def test_files_that_were_changed_on_the_disk_do_not_come_back(
    bell: Divingbell, kept: Conversations, tmp_path: Path, harm: str
) -> None:
    code = "for name in 'ab': open(name, 'w').write(name * 2_500_000)"
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok")) as keeper:
        await all_of(keeper)
    loaded = kept.load()
    folder = next((tmp_path / "kept").glob("*/files"))
    a, b = (folder / file.stored for file in (await loaded.files()).kept)
    if harm == "flip":
        raw = bytearray(a.read_bytes())
        raw[1_500_000] ^= 1
        a.write_bytes(raw)
    elif harm == "cut":
        a.write_bytes(a.read_bytes()[: 7 + (1 << 20) + 16])
    elif harm == "swap":
        a.write_bytes(b.read_bytes())
    else:
        a.unlink()
    async with resumed(bell, loaded, Says("ok")) as (again, told):
        assert "damaged, so not there: a" in told.text
        assert [file.path for file in await again.agent.session.files.list()] == ["b"]


async def test_with_another_key_nothing_comes_back_and_nothing_is_lost(
    bell: Divingbell, kept: Conversations, tmp_path: Path
) -> None:
    async with keeper_of(
        bell, kept.begin(), Says("", "open('f', 'w').write('1')"), Says("ok")
    ) as k:
        await all_of(k)
    other = Conversations(tmp_path / "kept", lambda: bytes(32))
    [info] = kept.list()
    assert other.list() == []
    with pytest.raises(ConfigError, match="another key of the vault: bring that key back"):
        other.load(info.name)
    async with resumed(bell, kept.load(), Says("ok")) as (again, told):
        assert "1 file back" in told.text and len(again.agent.history) > 3


async def test_no_value_that_models_do_not_see_is_on_the_disk(
    kept: Conversations, tmp_path: Path
) -> None:
    address = "anna.lindqvist@example.org"
    code = f"open('of {address}.csv', 'w').write('{address}')\nprint('{address}')"
    async with Divingbell(pool=0, privacy="personal") as private:
        begun = kept.begin()
        lines = (Says(f"I write to {address} now.", code), Says(f"Done: {address}."))
        async with keeper_of(private, begun, *lines) as keeper:
            await all_of(keeper, f"write to {address}")
    for path in (tmp_path / "kept").rglob("*"):
        assert address.encode() not in (path.read_bytes() if path.is_file() else b"")
        assert address not in path.name
    texts = [entry.text for entry in kept.load().entries()]
    assert "[EMAIL_" in texts[0] and not any(address in text for text in texts)


async def test_tokens_are_known_again_and_stand_for_the_same(kept: Conversations) -> None:
    address = "anna.lindqvist@example.org"
    async with Divingbell(pool=0, privacy="personal") as private:
        lines = (Says("", f"print('{address}')"), Says("ok"))
        async with keeper_of(private, kept.begin(), *lines) as keeper:
            await all_of(keeper)
            [answer] = [e for e in keeper.agent.history if isinstance(e, Answered)]
            token = answer.text.split()[0]
    assert token.startswith("[EMAIL_")
    async with Divingbell(pool=0, privacy="personal") as private:
        code = f"print('{token}' == 'anna.lind' + 'qvist@example.org', '{token}')"
        async with resumed(private, kept.load(), Says("", code), Says("ok")) as (again, told):
            await all_of(again)
            answers = [e for e in again.agent.history if isinstance(e, Answered)]
            assert answers[-1].text.startswith(f"True {token}\n")
            assert await again.agent.session.reveal(token) == address
            assert "no longer known" not in told.text


async def test_tokens_that_the_vault_has_forgotten_are_told(kept: Conversations) -> None:
    async with Divingbell(pool=0, privacy="personal") as private:
        begun = kept.begin()
        begun.log.add({"asked": "who is [EMAIL_482715]?", "images": []})
        begun.close()
        async with resumed(private, kept.load(), Says("ok")) as (again, told):
            assert "no longer known" in told.text and "no longer known" in told.entry.text
            await all_of(again)


def said(kept: Conversations) -> Conversation:
    """A conversation in which something was said."""
    conversation = kept.begin()
    conversation.log.add({"asking": "hello"})
    return conversation


def test_one_in_which_nothing_was_said_is_no_conversation(
    kept: Conversations, tmp_path: Path
) -> None:
    first = said(kept)
    first.close()
    empty = kept.begin()
    assert [info.title for info in kept.list()] == ["hello"]
    assert kept.load().name == first.name, "also where the newest has just begun elsewhere"
    empty.close()
    empty.close()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [first.name]


def test_names_begin_and_several_fit(kept: Conversations) -> None:
    with pytest.raises(InvalidInput, match="none is kept yet"):
        kept.load()
    first, second = said(kept), said(kept)
    first.close()
    second.close()
    assert kept.load(first.name[:-1]).name == first.name
    with pytest.raises(InvalidInput, match="several begin with '2'"):
        kept.load("2")
    for odd in ("../" + first.name, "/etc", "x\ny"):
        with pytest.raises(InvalidInput, match="there is no conversation"):
            kept.load(odd)
    kept.remove(second.name)
    assert [info.name for info in kept.list()] == [first.name]


def test_old_conversations_make_room_but_none_that_is_open(
    kept: Conversations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keeping, "MOST_KEPT", 3)
    made = [said(kept) for _ in range(3)]
    for number, conversation in enumerate(made):
        if number != 0:
            conversation.close()
        os.utime(tmp_path / "kept" / conversation.name / "log.jsonl", (number, number))
    said(kept).close()
    left = {info.name for info in kept.list()}
    assert made[0].name in left, "it is open"
    assert made[2].name in left and len(left) == 3


def test_a_folder_that_others_can_write_to_is_not_used(kept: Conversations, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(0o777)
    with pytest.raises(ConfigError):
        kept.begin()
    with pytest.raises(ConfigError):
        kept.list()


async def test_names_that_mean_harm_are_shown_as_what_they_are(
    bell: Divingbell, kept: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MOST_FILES", 1)
    code = (
        "for n in range(2): open(f'a{n}\\x1b[2J\\nb', 'w')\n"
        "odd = type('\\x1b[31mred\\n', (), {})()  # \x1b[2J\n"
        "globals()['x\\x1b[2Jy'] = 1"
    )
    async with keeper_of(bell, kept.begin(), Says("", code), Says("ok")) as keeper:
        events = await all_of(keeper)
    [notice] = [event.text for event in events if isinstance(event, Notice)]
    async with resumed(bell, kept.load(), Says("ok")) as (_, told):
        for text in (notice, told.text, told.entry.text):
            assert "\x1b" not in text
    assert "odd" in told.text


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a = b = 1", {"a", "b"}),
        ("import os.path as p, sys\nfrom json import loads", {"p", "sys", "loads"}),
        ("for i in range(3):\n    j = i\nwith open('f') as file: pass", {"i", "j", "file"}),
        ("def f(x):\n    y = 1\nclass C:\n    z = 1", {"f", "C"}),
        ("if (n := 3) > 1: pass\n[k for k in range(3)]", {"n"}),
        ("%matplotlib inline\nfiles = !ls\nx: int = 3\ny == 4", {"files", "x"}),
    ],
)
def test_names_that_a_cell_binds(code: str, names: set[str]) -> None:
    assert set(bound_in(code)) == names
