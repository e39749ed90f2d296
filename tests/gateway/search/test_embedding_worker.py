"""Search by meaning gets ready beside everything else."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.gateway.search.embedding_worker import EmbeddingWorker
from divingbell.gateway.search.embeddings import PORTION, Embeddings
from divingbell.gateway.search.index import Index
from divingbell.tool import Tool
from tests.gateway.search.test_embeddings import encoder
from tests.waiting import until


def tools(count: int) -> list[Tool]:
    names = (f"tool_{number}" for number in range(count - 1))
    made = [Tool("shop", name, "shop", name, f"Does the thing called {name}.") for name in names]
    return [Tool("shop", "weather", "shop", "weather", "Tells how hot it is outside."), *made]


async def test_tools_are_found_by_meaning_once_they_are_prepared(tmp_path: Path) -> None:
    model = Embeddings(encoder(), tmp_path)
    known = tools(PORTION + 3)
    index = Index(known)
    worker = EmbeddingWorker(index, lambda: model)
    try:
        worker.prepare(known)
        asked = "temperature forecast"
        await until(
            lambda: [tool.name for tool in index.search(asked, 1)] == ["weather"], "the model"
        )
    finally:
        worker.stop()


async def test_without_a_model_words_have_to_do_and_the_reason_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def missing() -> Embeddings:
        raise ConfigError("pip install it")

    caplog.set_level(logging.WARNING, "divingbell")
    index = Index(tools(3))
    worker = EmbeddingWorker(index, missing)
    worker.prepare(tools(3))
    await until(lambda: "pip install it" in caplog.text, "the reason")
    worker.stop()
    assert index.embeddings is None


class Slow:
    """In the place of the model: it can be watched, and takes its time."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.go = threading.Semaphore(0)

    def prepare(self, tools: list[Tool], is_stale: Callable[[], bool]) -> None:
        self.begun.append(len(tools))
        while not is_stale() and not self.go.acquire(timeout=0.01):
            pass
        self.ended.append(len(tools))


async def test_it_stops_when_it_is_told_to_and_a_new_list_comes_first() -> None:
    slow = Slow()
    worker = EmbeddingWorker(Index(), lambda: slow)  # type: ignore[arg-type,return-value]
    worker.prepare(tools(40))
    await until(lambda: slow.begun == [40], "the first list")
    worker.prepare(tools(5))
    await until(lambda: slow.ended == [40] and slow.begun == [40, 5], "the new list")
    worker.stop()
    assert slow.ended == [40, 5]
    assert worker._thread is not None and not worker._thread.is_alive()
