"""Metrics: counts of what the journal tells, for a monitor that asks for all of them now and then.

No user, no name of a tool and no text of others is a label. What can be one is a word of ours, or
the name of a server from the settings, of which so many are told apart: a monitor keeps each series
for as long as it keeps anything, and writing them out takes the longer the more there are.
"""

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from divingbell import errors
from divingbell.journal.events import (
    AnswerEnded,
    ApprovalAnswered,
    CallDecided,
    CallEnded,
    CallRequested,
    CellEnded,
    CellRefused,
    CellStarted,
    ExecutionRefused,
    JournalEvent,
    SessionOpened,
)
from divingbell.journal.readings import Readings
from divingbell.journal.series import Counts, Spread
from divingbell.journal.serve_arm_totals import tokens_of
from divingbell.journal.totals import READ_BY_MODELS
from divingbell.journal.use_cases import use_of
from divingbell.models import Ledger
from divingbell.principal import Principal

MOST_SERVERS = 40
"""Servers that are told apart, in the order of the settings; the rest is `other`."""
MOST_KINDS = 60
"""Kinds of hidden values that are told apart."""
MOST_CONVERSATIONS = 10_000
"""Conversations of which is remembered what they have used; one that is forgotten and comes again
is counted again."""
LOOK_EVERY = 0.5
"""Seconds between two looks at how late the loop is."""
OTHER, HOST = "other", "host"
NOTHING, ANY = "none", "any"
TOKENS_OF_A_PRICE = 1_000_000

CELLS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
CALLS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAITS = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 30)
LAGS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1)
LENGTHS = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000)


async def _nothing() -> Readings:
    return Readings()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What metrics have to know besides events."""

    servers: Iterable[str] = ()
    """Names of servers in the settings."""
    backend: Callable[[], str] = lambda: NOTHING
    arm_of: Callable[[str], str | None] = lambda user: None
    """The arm of an experiment that a user is in."""
    price: float = 0.0
    """US dollars for a million tokens that a model reads; 0 where nobody has said it."""
    read: Callable[[], Awaitable[Readings]] = _nothing


class Metrics:
    """A subscriber that counts, in a registry of its own."""

    content_type: ClassVar[str] = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, surroundings: Surroundings | None = None) -> None:
        self._about = about = surroundings or Surroundings()
        self._servers = {*list(dict.fromkeys(about.servers))[:MOST_SERVERS], HOST}
        self._arm_of = functools.lru_cache(MOST_CONVERSATIONS)(
            lambda user: about.arm_of(user) or NOTHING
        )
        self._conversations: OrderedDict[tuple[str, str], set[str]] = OrderedDict()
        self.queue_length: Callable[[], int] = lambda: 0
        """Tells how many executions wait for their turn; a surface that has a queue sets it."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._readings = _ReadingsCollector(self._registry)
        ProcessCollector(registry=self._registry)
        self._make_series()
        # At 0 from the start: where a first one is the first sample, no monitor sees a rise.
        self._errors.add(0, errors.SandboxUnavailable.code)
        for used in (ANY, "code", "direct"):
            self._conversing.add(0, used)
        self._watching: asyncio.Task[None] | None = None
        self._takers: dict[type, Callable[[Any], None]] = {
            SessionOpened: lambda event: self._sessions_opened.add(),
            CellStarted: self._cell_started,
            CellEnded: self._cell_ended,
            CellRefused: lambda event: self._denied("review"),
            ExecutionRefused: self._execution_refused,
            CallRequested: self._call_requested,
            CallDecided: self._call_decided,
            CallEnded: self._call_ended,
            ApprovalAnswered: self._approval_answered,
            AnswerEnded: self._answer_ended,
        }

    def _make_series(self) -> None:
        def counter(name: str, words: str, *labels: str) -> Counts:
            return Counts(self._registry, f"divingbell_{name}", words, labels)

        def histogram(name: str, words: str, bounds: Iterable[float]) -> Spread:
            return Spread(self._registry, f"divingbell_{name}", words, bounds)

        def gauge(name: str, words: str) -> Counts:
            return Counts(self._registry, f"divingbell_{name}", words, can_fall=True)

        self._executions = counter(
            "executions", "Cells that have ended.", "status", "backend", "arm"
        )
        self._seconds = histogram("execution_seconds", "Wall time of cells.", CELLS)
        self._running = gauge("executions_running", "Cells that run now.")
        self._waited = histogram(
            "queue_seconds", "Time that cells waited for those before them in their session.", WAITS
        )
        self._cpu = counter("cpu_seconds", "Processor time of cells, all their processes together.")
        self._sessions_opened = counter("sessions_opened", "Sessions that were opened.")
        self._conversing = counter(
            "conversations", "Conversations that have used code, tools directly, or any.", "used"
        )
        self._calls = counter(
            "tool_calls", "What was asked of servers, by how it ended.", "server", "outcome"
        )
        self._call_seconds = histogram("tool_call_seconds", "Time of calls of tools.", CALLS)
        self._read = counter("tokens_read", "Tokens that models read or wrote, by code.", "arm")
        self._direct = counter(
            "tokens_direct", "Tokens that the same would have been without code.", "arm"
        )
        self._saved = gauge("tokens_saved", "The difference since the start; it can fall.")
        if self._about.price:
            self._cost = gauge("cost_saved_dollars", "Tokens saved, at the price in the settings.")
        self._denials = counter("denials", "What was refused, by whom.", "by")
        self._errors = counter("errors", "Failures, by their codes.", "code")
        self._lag = histogram("loop_lag_seconds", "How late the event loop was.", LAGS)
        self._uses = counter("uses", "What cells used tools for, by written rules.", "use")
        self._length = histogram("code_characters", "Length of code.", LENGTHS)
        self._answers = counter("answers", "Answers of agents.", "arm", "answered")
        self._answer_tokens = counter("answer_tokens", "Tokens of their models.", "arm", "kind")
        self._answer_cost = counter("answer_cost_dollars", "Their cost, where it is known.", "arm")

    # For whoever serves them

    async def render(self) -> bytes:
        """Return all of them as text, of the type `content_type`.

        It is written in a thread; the loop only reads the sessions, some at a time.
        """
        found = await self._about.read()
        self._readings.latest = replace(found, queue=self.queue_length())
        return await asyncio.to_thread(generate_latest, self._registry)

    def answered(self, code: str) -> None:
        """Count an error that a surface has answered with, by its code."""
        if code != errors.RateExceeded.code:  # the journal tells of these, whoever asked
            self.failed(code)

    def failed(self, code: str) -> None:
        """Count an error, by its code (divingbell.errors)."""
        self._errors.add(1, code if code in _codes() else OTHER)

    def start(self) -> None:
        """Look from now on how late the loop is."""
        self._watching = asyncio.create_task(self._watch_loop())

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _watch_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)
            self._lag.observe(max(loop.time() - due, 0.0))

    # Events

    def take(self, event: JournalEvent) -> None:
        """Count an event; see the journal."""
        taker = self._takers.get(type(event))
        if taker is not None:
            taker(event)

    def _cell_started(self, event: CellStarted) -> None:
        self._running.add()
        self._length.observe(len(event.code))
        self._waited.observe(event.waited)
        self._converse(event.principal, "code")

    def _cell_ended(self, event: CellEnded) -> None:
        self._running.add(-1)
        result, arm = event.result, self._arm_of(event.principal.user)
        status = "cancelled" if result is None else result.status
        self._executions.add(1, status, self._about.backend(), arm)
        if result is None:
            return
        self._seconds.observe(result.usage.wall_ms / 1000)
        self._cpu.add((result.usage.cpu_ms or 0.0) / 1000)
        self._uses.add(1, use_of(result))
        if result.ledger is not None and event.principal.client in READ_BY_MODELS:
            self._count_tokens(result.ledger, arm)

    def _count_tokens(self, ledger: Ledger, arm: str) -> None:
        self._read.add(ledger.read, arm)
        self._direct.add(ledger.direct, arm)
        self._saved.add(ledger.saved)
        if self._about.price:
            self._cost.add(ledger.saved * self._about.price / TOKENS_OF_A_PRICE)

    def _count_direct(self, event: CallEnded) -> None:
        """Count the tokens of a call that passed through a model: nothing is saved by it."""
        estimate, arm = tokens_of(event), self._arm_of(event.principal.user)
        self._read.add(estimate, arm)
        self._direct.add(estimate, arm)

    def _execution_refused(self, event: ExecutionRefused) -> None:
        self._denied("rate")
        self.failed(errors.RateExceeded.code)

    def _call_requested(self, event: CallRequested) -> None:
        if event.by == "client" and event.kind != "question":
            self._converse(event.principal, "direct")

    def _call_decided(self, event: CallDecided) -> None:
        if event.action == "deny":
            self._denied("rule" if event.flow is None else "flow")

    def _call_ended(self, event: CallEnded) -> None:
        if event.code:
            self.failed(event.code)
        if event.kind == "question":
            return
        # What was not found has the name that it was asked for by, which is text of others.
        server = event.name.partition(".")[0]
        server = server if server in self._servers else OTHER
        if event.by == "client" and event.sent and event.principal.client in READ_BY_MODELS:
            self._count_direct(event)
        self._calls.add(1, server, event.outcome)
        self._call_seconds.observe(event.seconds)

    def _approval_answered(self, event: ApprovalAnswered) -> None:
        if event.word in ("no", "nobody"):
            self._denied("person" if event.word == "no" else "nobody")

    def _answer_ended(self, event: AnswerEnded) -> None:
        arm = event.arm or NOTHING
        answered = "yes" if event.reason == "answered" else "no"
        self._answers.add(1, arm, answered)
        for kind, tokens in (
            ("input", event.input_tokens),
            ("cached", event.cached_tokens),
            ("output", event.output_tokens),
        ):
            self._answer_tokens.add(tokens, arm, kind)
        if event.cost is not None:
            self._answer_cost.add(event.cost, arm)

    def _denied(self, by: str) -> None:
        self._denials.add(1, by)

    def _converse(self, principal: Principal, way: str) -> None:
        """Count a conversation the first time that it is seen, and that it uses this."""
        key = (principal.user, principal.conversation)
        used = self._conversations.get(key)
        if used is None:
            used = self._conversations[key] = set()
            self._conversing.add(1, ANY)
            if len(self._conversations) > MOST_CONVERSATIONS:
                self._conversations.popitem(last=False)
        if way not in used:
            used.add(way)
            self._conversing.add(1, way)


@functools.cache
def _codes() -> frozenset[str]:
    """The codes of our errors: there are no others."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    named = {kind.code for kind in kinds if issubclass(kind, errors.DivingbellError)}
    return frozenset({*named, *get_args(errors.ToolFailure), *get_args(errors.Refusal)})


class _ReadingsCollector(Collector):
    """Puts the latest readings into the registry's words."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.latest = Readings()
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        latest = self.latest
        gauges = {
            "memory_bytes": ("Memory that all sessions hold.", latest.memory),
            "pool_sessions": ("Sessions that wait to be opened.", latest.pool),
            "copies": ("Copies of interpreters that wait for an accident.", latest.copies),
            "queue_length": ("Executions that wait for their turn.", latest.queue),
        }
        for name, (words, value) in gauges.items():
            yield GaugeMetricFamily(f"divingbell_{name}", words, value)
        counters = {
            "copies_made": ("Copies that were made.", latest.copies_made),
            "unrecorded": ("What was not done as it could not be recorded.", latest.unrecorded),
        }
        for name, (words, value) in counters.items():
            yield CounterMetricFamily(f"divingbell_{name}", words, value)
        states = {"busy": latest.busy, "idle": latest.idle}
        sessions = GaugeMetricFamily("divingbell_sessions", "Sessions now.", labels=["state"])
        yield _labelled(sessions, states)
        ways = {"pool": latest.from_pool, "made": latest.made}
        words = "Sessions that were opened, by where they came from."
        yield _labelled(CounterMetricFamily("divingbell_pool_taken", words, labels=["by"]), ways)
        words = "Values that were hidden from models, by their kinds."
        masked = CounterMetricFamily("divingbell_values_masked", words, labels=["kind"])
        yield _labelled(masked, _bounded(latest.masked))


def _labelled(family: Any, values: Mapping[str, int]) -> Metric:
    for name, value in values.items():
        family.add_metric([name], value)
    made: Metric = family
    return made


def _bounded(masked: Mapping[str, int]) -> Mapping[str, int]:
    """Return so many kinds, and the others as one: some are names from the settings."""
    names = sorted(masked)
    told = {name: masked[name] for name in names[:MOST_KINDS]}
    rest = sum(masked[name] for name in names[MOST_KINDS:])
    return {**told, OTHER: rest} if rest else told
