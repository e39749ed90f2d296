"""What an analyzer of the user finds is added; what it could not read is held back."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.border.privacy import analyzer as module
from divingbell.border.privacy.analyzer import Analyzer, load
from divingbell.border.privacy.choosing import make_scanner
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.scanner import Scanner
from divingbell.errors import ConfigError
from divingbell.settings.privacy import PrivacyRules
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
TEXT = "Ann Leeson of Oslo has ann@example.org"
FOUND = [("NAME", "Ann Leeson"), ("ADDRESS", "Oslo"), ("EMAIL", "ann@example.org")]


class Named:
    """An engine that knows a few names, and counts what it is asked."""

    supported_languages = ("en",)

    def __init__(self, **names: str) -> None:
        self.names = names or {"PERSON": "Ann Leeson", "LOCATION": "Oslo"}
        self.asked: list[int] = []

    def get_supported_entities(self, language: str) -> list[str]:
        return [*self.names, "URL"]

    def analyze(self, text: str, language: str, entities: list[str]) -> Iterator[Any]:
        self.asked.append(len(text))
        for entity, name in self.names.items():
            if (start := text.find(name)) >= 0 and entity in entities:
                yield SimpleNamespace(start=start, end=start + len(name), entity_type=entity)


class Failing(Named):
    def analyze(self, text: str, language: str, entities: list[str]) -> Iterator[Any]:
        raise RuntimeError(text)


class Lying(Named):
    def analyze(self, text: str, language: str, entities: list[str]) -> Iterator[Any]:
        yield SimpleNamespace(start=-3, end=len(text) + 9, entity_type="PERSON")


class Hanging(Named):
    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.waits = False

    def analyze(self, text: str, language: str, entities: list[str]) -> Iterator[Any]:
        self.waits = True
        self.go_on.wait(60)
        yield from super().analyze(text, language, entities)


def scanner_with(engine: Any) -> Scanner:
    return Scanner(KINDS, {}, Analyzer(engine, KINDS))


def found(scanner: Scanner, text: str) -> list[tuple[str, str]]:
    return [(find.kind, text[find.start : find.end]) for find in scanner.finds(text)]


def test_its_finds_are_added_to_those_of_the_shapes() -> None:
    assert found(scanner_with(Named()), TEXT) == FOUND


def test_it_is_asked_once_for_a_text_and_never_for_one_without_words() -> None:
    engine = Named()
    scanner = scanner_with(engine)
    for text in (TEXT, "2", "17.5, 18", TEXT):
        scanner.finds(text)
    assert engine.asked == [len(TEXT)]


def test_a_long_text_is_read_in_pieces_that_overlap() -> None:
    engine = Named()
    text = "x " * (module.PIECE // 2 - 2) + "Ann Leeson " + "x " * module.PIECE
    assert ("NAME", "Ann Leeson") in found(scanner_with(engine), text)
    assert max(engine.asked) <= module.PIECE + module.OVERLAP
    assert len(engine.asked) == 4


@pytest.mark.parametrize("engine", [Failing(), Lying()])
def test_where_it_fails_the_text_is_held_back_and_the_log_does_not_have_it(
    engine: Named, caplog: pytest.LogCaptureFixture
) -> None:
    assert found(scanner_with(engine), TEXT) == [("VALUE", TEXT)]
    assert "Leeson" not in caplog.text


def test_what_it_has_not_read_in_time_is_held_back_and_nobody_else_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.05)
    engine = Hanging()
    scanner = scanner_with(engine)
    assert found(scanner, TEXT) == [("VALUE", TEXT)]
    monkeypatch.setattr(module, "SECONDS", 3600)  # the next one would wait as long
    assert found(scanner, "Bo Hall of Rome") == [("VALUE", "Bo Hall of Rome")]
    engine.go_on.set()
    late = scanner._analyzer and scanner._analyzer._late
    assert late is not None and late.done.wait(30)
    assert found(scanner, TEXT) == FOUND


def test_of_a_text_without_end_the_rest_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1000)
    text = TEXT + " x" * 1000
    *_, last = scanner_with(Named()).finds(text)
    assert (last.start, last.end, last.kind) == (1001 - module.OVERLAP, len(text), "VALUE")


@pytest.mark.parametrize("engine", [Named(PERSON="stdout"), Failing()])
def test_words_of_the_protocol_stay(engine: Named) -> None:
    text = "ok\nstdout\ntext/plain\nstructuredContent"
    assert found(scanner_with(engine), text) == []
    assert [kind for kind, _ in found(scanner_with(engine), "to stdout, he said")] != []


def test_an_engine_that_finds_nothing_of_use_is_refused() -> None:
    with pytest.raises(ConfigError, match="recognizer for PERSON or LOCATION"):
        Analyzer(Named(DATE_TIME="x"), KINDS)


def test_kinds_of_ones_own_may_be_found_by_it() -> None:
    scanner = Scanner((), {"CUSTOMER": "C-[0-9]{8}"}, Analyzer(Named(CUSTOMER="Ann"), ["CUSTOMER"]))
    assert found(scanner, TEXT) == [("CUSTOMER", "Ann")]


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("my_models")
    vars(made).update(engine=Named(), make=Named, broken=lambda: 1 / 0)
    monkeypatch.setitem(sys.modules, "my_models", made)
    return made


@pytest.mark.parametrize("name", ["my_models:engine", "my_models:make"])
def test_the_settings_name_an_engine_or_what_makes_one(brought: ModuleType, name: str) -> None:
    assert found(make_scanner("personal", PrivacyRules(analyzer=name)), TEXT) == FOUND


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my_models:broken", "can't be used: ZeroDivisionError"),
        ("my_models:nothing", "can't be used: AttributeError"),
        ("no_such_models:engine", "install it, or name its folder in PYTHONPATH"),
    ],
)
def test_one_that_can_not_be_used_keeps_it_from_starting(
    brought: ModuleType, name: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        load(name, KINDS)


def test_without_presidio_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wants_presidio.py").write_text("import presidio_analyzer\nengine = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match=r"pip install 'divingbell\[presidio\]'"):
        load("wants_presidio:engine", KINDS)


def test_it_is_not_loaded_where_personal_data_is_shown() -> None:
    rules = PrivacyRules(analyzer="no_such_models:engine")
    assert found(make_scanner("secrets", rules), TEXT) == []


async def test_a_model_reads_tokens_for_what_it_finds(brought: ModuleType) -> None:
    rules = {"analyzer": "my_models:engine"}
    async with (
        Divingbell(privacy="personal", privacy_rules=rules, pool=0, preload=[]) as bell,
        bell.session() as session,
    ):
        result = await session.run("print('Ann ' + 'Leeson lives in Os' + 'lo')")
        assert "Leeson" not in result.text and "Oslo" not in result.text
        assert "[NAME_" in result.text and "[ADDRESS_" in result.text
        assert await session.reveal(result.text) == "Ann Leeson lives in Oslo\n"


async def test_the_event_loop_goes_on_while_it_is_waited_for(
    brought: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 30.0)
    monkeypatch.setattr(module, "MOST_SECONDS", 30.0)
    vars(brought)["engine"] = engine = Hanging()
    rules = {"analyzer": "my_models:engine"}

    async def let_go_on() -> None:
        await until(lambda: engine.waits, "the engine is asked")
        engine.go_on.set()  # which a loop that waits for it never does

    async with (
        Divingbell(privacy="personal", privacy_rules=rules, pool=0, preload=[]) as bell,
        bell.session() as session,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(let_go_on())
        result = await session.run("print('Ann ' + 'Leeson')")
        assert "[NAME_" in result.text


async def test_what_it_could_not_read_can_be_revealed(brought: ModuleType) -> None:
    vars(brought)["engine"] = Failing()
    rules = {"analyzer": "my_models:engine"}
    async with (
        Divingbell(privacy="personal", privacy_rules=rules, pool=0, preload=[]) as bell,
        bell.session() as session,
    ):
        result = await session.run("print('Ann ' + 'Leeson')")
        assert "Leeson" not in result.text and "[VALUE_" in result.text
        assert (await session.reveal(result.text)).strip() == "Ann Leeson"


def test_a_real_engine_of_presidio_works() -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        environments, turns = map(importlib.import_module, ("environments", "turns"))
    finally:
        sys.path.remove(str(ROOT / "bench"))
    lock = ROOT / "requirements" / "privacy-peers.txt"
    try:
        python = environments.environment(lock, bool(os.environ.get("CI")), "./dev bench privacy")
    except turns.Unable as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [
            python,
            Path(__file__).with_name("presidio_engine.py"),
            ROOT / "src",
            sysconfig.get_paths()["purelib"],
        ],
        input=TEXT + ", and so has Bo Hall.",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [*map(list, FOUND), ["NAME", "Bo Hall"]]


def test_presidio_is_not_imported_unless_it_is_named() -> None:
    code = (
        "import sys; from divingbell.border.privacy.choosing import make_scanner; "
        "from divingbell.settings.privacy import PrivacyRules; "
        "make_scanner('personal', PrivacyRules()).finds('Ann'); "
        "print([name for name in sys.modules if name.startswith(('presidio', 'spacy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
