"""The thread that prepares search by meaning, which nobody waits for."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.gateway.search.index import Index
from divingbell.tool import Tool

if TYPE_CHECKING:
    from divingbell.gateway.search.embeddings import Embeddings

log = logs.logger("divingbell.gateway")

STOP_TIMEOUT = 5.0


class EmbeddingWorker:
    """A worker that prepares the tools of an index for search by meaning.

    Until most are prepared, all are found by their words.
    """

    def __init__(self, index: Index, load: Callable[[], "Embeddings"]) -> None:
        self._index = index
        self._load = load
        self._tools: list[Tool] | None = None
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def prepare(self, tools: list[Tool]) -> None:
        """Prepare these tools, and no others: they are all that there are now."""
        with self._changed:
            self._tools = tools
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="divingbell-embeddings", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End it, after the portion that it is at. It blocks: call it in a thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        try:
            embeddings = self._load()
        except ConfigError as error:
            log.warning("tools are found by words alone: %s", error)
            return
        self._index.embeddings = embeddings
        while (tools := self._next()) is not None:
            try:
                embeddings.prepare(tools, self._is_stale)
            except Exception:  # search by words goes on without it
                log.exception("tools could not be prepared for search by meaning")
                return

    def _is_stale(self) -> bool:
        """Whether the tools that are being prepared are no longer those that there are."""
        return self._stopped or self._tools is not None

    def _next(self) -> list[Tool] | None:
        with self._changed:
            while self._tools is None and not self._stopped:
                self._changed.wait()
            tools, self._tools = self._tools, None
            return None if self._stopped else tools
