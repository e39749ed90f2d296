"""The pipeline: everything that is asked of a server passes these steps, and no other way.

budget → size → find → parse → restore → bind → decide → flow → check → pin → approve → intend →
send → check_result → screen → pack

Calls of tools, resources, prompts, lists and completions, by code and by clients alike. Each step
may change the request or refuse it, and nothing is sent before all until `send` have passed. The
budget comes first: what is refused, or not there at all, costs the host some work too. Whatever
becomes of a request, the journal has its end.
"""

import asyncio
import contextlib
import copy
import functools
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from divingbell import logs
from divingbell.border.border import Border, OpenBorder, Restored
from divingbell.border.vault import tokens
from divingbell.errors import DivingbellError, NotRecorded, ToolFailed, UnknownToken
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import Catalog
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.functions.host_tools import HostTools
from divingbell.gateway.policy.approval_form import ElicitingApprover
from divingbell.gateway.policy.approvals import Approval, Approvals, Approver, FirstOf
from divingbell.gateway.policy.labels import FlowMatch, Labels, Source, in_order
from divingbell.gateway.policy.meter import Budgets, Meter
from divingbell.gateway.policy.pins import Pins, Review
from divingbell.gateway.policy.preview import preview
from divingbell.gateway.policy.values import ValueFlows
from divingbell.gateway.schema import check, outcome
from divingbell.gateway.schema.problem import Problem
from divingbell.gateway.shared import SharedParts
from divingbell.gateway.spooled_tables import SpooledTable, take, take_values
from divingbell.gateway.upstream.fleet import Fleet
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.journal.events import (
    By,
    CallDecided,
    CallEnded,
    CallKind,
    CallOutcome,
    CallRequested,
    CallSent,
)
from divingbell.journal.journal import Journal
from divingbell.models import Event
from divingbell.settings import policy
from divingbell.settings.policy import Decision, Policy
from divingbell.shares import weight
from divingbell.shares.collector import COLLECTOR, LONGEST_REST, SOON, Rest
from divingbell.tool import Tool
from divingbell_inside import frames

if TYPE_CHECKING:
    from divingbell.gateway.upstream.base import UpstreamConnection

log = logs.logger("divingbell.gateway")

RUN = "divingbell.run"
"""The name that running a cell has where a person is asked about it."""

MAX_NAME = 200
"""Characters of what was called, in a message."""
MAX_PROBLEMS = 3
LARGE_ARGUMENTS = 1 << 16
"""Bytes; more are parsed in a thread."""
HEAVY_ARGUMENTS = 8_000
"""Their weight; what is heavier is parsed in a thread. Measured: at most 1 ms, for decimals."""
_numbers = itertools.count(1)

ALLOWED = Decision("allow")
Send = Callable[["UpstreamConnection", "Request", float], Awaitable[Any]]
"""Puts a request to its server, by a connection, within so many seconds."""


class _Outdated(Exception):
    """The list of the server's tools was kept from an earlier start, and it may be another now."""


class Form(NamedTuple):
    """The form in which code gets a result: JSON made of it, and what kind of value that is."""

    made: Callable[[Any], Any]
    kind: str


@dataclass(slots=True)
class Request:
    """One request on its way: what is asked for, by whom, and what the steps have made of it."""

    kind: CallKind
    name: str
    """As it was asked for: `server.tool`, or for rules `server.read_resource` and the like."""
    context: CallContext
    send: Send | None = None
    verbatim: bool = False
    """Whether tokens in the arguments are left as they are: nobody gets the values."""
    raw: bytes | None = None
    """The arguments as they came, where they are not parsed yet."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """The arguments as they came, where nothing is to be parsed."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The arguments as they were given, once they are parsed and restored."""
    restored: tuple[Restored, ...] = ()
    """The values that were put into them, where there are rules about such."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments as they are sent: with those that the host sets."""
    found: Tool | None = None
    decision: Decision = ALLOWED
    flows: tuple[FlowMatch, ...] = ()
    """The rules about flows that hold it back."""
    must_ask: bool = False
    reason: str = ""
    """Why the person is asked."""
    departure: Departure | None = None
    """The wait for its record, from `intend` on."""
    result: Any = None
    """As the server gave it."""
    spool: Path | None = None
    """The folder in which the server may leave tables; only our own dataset server has one."""
    table: SpooledTable | None = None
    personal: str = ""
    """The values of the personal columns of a table, as JSON; they are to be learned."""
    """The result where it is a file."""
    form: Form | None = None
    """The form in which code gets the result, where it is none of a tool."""
    wire: Any = None
    """The result in the form that code gets."""
    answer: Answer | None = None
    """The same as it goes back into the session."""
    rest: Rest | None = None
    """The garbage collector's, while heavy arguments are held."""
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def tool(self) -> Tool:
        assert self.found is not None
        return self.found

    @property
    def by(self) -> By:
        return self.context.by

    @property
    def is_tool(self) -> bool:
        return self.kind == "tool"


Step = Callable[[Request], Awaitable[None]]


@contextlib.contextmanager
def _no_call_was_made(name: str) -> Iterator[None]:
    """Tell code of a call that could not be recorded."""
    try:
        yield
    except NotRecorded as error:
        raise ToolFailed(f"{name}: no call was made: {error}", "tool_unavailable") from None


class Pipeline:
    """Takes requests through the steps."""

    def __init__(
        self,
        rules: Policy,
        catalog: Catalog,
        fleet: Fleet,
        pins: Pins,
        journal: Journal,
        border: Border,
        find: Callable[[str, str, str], Awaitable[Tool]],
        host: HostTools,
        on_approval: Approver | None = None,
        shared: SharedParts | None = None,
    ) -> None:
        self.pins = pins
        self._shared_pins = None if shared is None else shared.pins
        remembered = None if shared is None else shared.remembered
        self.approvals = Approvals(rules.approval_timeout, journal, remembered)
        self.meter: Budgets = Meter(rules) if shared is None else shared.budgets
        self.labels = Labels(rules.flow) if shared is None else shared.labels
        self._value_flows = ValueFlows(rules.flow)
        self._policy = rules
        self._catalog = catalog
        self._fleet = fleet
        self._journal = journal
        self._border = border
        self._find = find
        self._host = host
        self._on_approval = on_approval
        self.also_asked: Approver | None = None
        """One who is asked at the same time as everybody else: the first answer counts."""
        self._saving: asyncio.Task[None] | None = None
        self._to_server: tuple[Step, ...] = (
            self.budget,
            self.size,
            self.find,
            self.parse,
            self.restore,
            self.bind,
            self.decide,
            self.flow,
            self.check,
            self.pin,
            self.approve,
            self.intend,
            self.send,
            self.check_result,
            self.screen,
            self.pack,
        )
        self._to_gateway: tuple[Step, ...] = (
            self.budget,
            self.size,
            self.parse,
            self.restore,
        )

    async def stop(self) -> None:
        """Remember what is to be remembered."""
        if self._saving is not None:
            await asyncio.wait([self._saving])
        if self.pins.unsaved:
            await asyncio.to_thread(self.pins.save)

    async def run(
        self, request: Request, question: Callable[[], Awaitable[Answer]] | None = None
    ) -> None:
        """Take a request through all steps; `question` answers one that is for the gateway itself.

        Raises:
            ToolFailed: a step has refused it, or the server could not be reached.
        """
        context, began = request.context, time.perf_counter()
        who = (context.principal, context.key, context.run, request.by, request.kind)
        self._journal.note(CallRequested(request.number, *who, request.name))
        outcome: CallOutcome = "failed"
        code = "tool_error"
        try:
            if question is None:
                await self._take(request)
            else:
                for step in self._to_gateway:
                    await step(request)
                request.answer = await question()
                self._policy.check_result_size(request.name, len(request.answer.body))
            if not getattr(request.result, "is_error", False):
                outcome, code = "ok", ""
        except asyncio.CancelledError:
            outcome, code = "cancelled", "tool_cancelled"
            raise
        except DivingbellError as error:
            code = error.code
            if code == "tool_denied":
                outcome = "denied"
            elif not context.sent:
                outcome = "refused"
            raise
        finally:
            self._journal.note(
                CallEnded(
                    request.number,
                    *who,
                    request.name if request.found is None else request.found.full_name,
                    outcome,
                    code,
                    context.sent,
                    request.given,
                    request.raw or b"",
                    request.result,
                    b"" if request.answer is None else request.answer.body,
                    time.perf_counter() - began,
                )
            )
            if request.rest is not None:
                request.rest.end_within(SOON)

    async def _take(self, request: Request) -> None:
        try:
            await self._take_steps(request)
        except ToolFailed as error:
            if request.found is None or not request.context.sent:
                raise
            # The words may be the server's, and hold what a result would.
            principal, origin = request.context.principal, request.found.full_name
            words = await self._border.outward(str(error), principal, "sandbox", origin)
            if words == str(error):
                raise
            raise ToolFailed(words, error.code) from None

    async def _take_steps(self, request: Request) -> None:
        steps = self._to_server
        try:
            for step in steps:
                await step(request)
        except _Outdated:
            for step in steps[steps.index(self.find) :]:
                await step(request)

    # The steps, in their order

    async def budget(self, request: Request) -> None:
        """Count it against the budgets, once: a question may lead to requests to servers."""
        context = request.context
        if not context.counted:
            context.counted = True
            key, run = context.payer or (context.key, context.run)
            await self.meter.reserve(key, context.user, run)

    async def size(self, request: Request) -> None:
        """Refuse arguments that are too large, before anything is made of them."""
        if request.raw is None:
            data = await weight.beside(_written, request.asked)
        else:
            data = request.raw
        self._policy.check_arguments(request.name[:MAX_NAME], data)

    async def find(self, request: Request) -> None:
        """Find the tool, or for what is none of a tool, its server."""
        if request.is_tool:
            context = request.context
            request.found = await self._find(request.name, context.user, context.key)
        else:
            name, _, what = request.name.rpartition(".")
            server = self._catalog.check_server(name)
            request.found = Tool(server, what, server, what)

    async def parse(self, request: Request) -> None:
        """Parse the arguments of code, which come as strict JSON."""
        if request.raw is None:
            request.given = request.asked
        else:
            request.given = await _parsed(request, request.raw)

    async def restore(self, request: Request) -> None:
        """Put back what a model was shown something else for."""
        if request.verbatim:
            return
        server = "" if request.found is None else request.found.server
        given, principal, raw = request.given, request.context.principal, request.raw
        try:
            if self._value_flows:
                request.restored = await self._border.restored(given, principal, raw)
            request.given = await self._border.inward(given, principal, server, raw)
        except UnknownToken as error:
            name = request.name[:MAX_NAME]
            raise ToolFailed(f"{name}: {error}", "tool_arguments") from None
        if request.found is not None:
            # A tool may say again what it was told.
            await self._border.learn(request.given, principal, request.found.full_name)

    async def bind(self, request: Request) -> None:
        """Add the arguments that the host sets, and refuse those that it alone may set."""
        context = request.context
        if request.is_tool:
            request.arguments = self._policy.bind(
                request.tool, request.given, context.user, context.session
            )
        else:
            self._policy.check_bound(request.tool, request.given.get("arguments", {}))
            request.arguments = request.given

    async def decide(self, request: Request) -> None:
        """Ask the rules."""
        user = request.context.user
        request.decision = self._policy.decide(request.tool, request.arguments, user)
        if request.decision.action == "deny":
            self._note_decision(request)
            raise policy.denied(request.tool, request.decision)
        request.must_ask = request.decision.action == "ask"
        request.reason = request.decision.reason

    async def flow(self, request: Request) -> None:
        """Hold back what must not get the data that the conversation has, or values of a kind that
        are in the arguments. It allows nothing."""
        name, context = request.tool.full_name, request.context
        by_values = self._value_flows.matches(context.user, name, request.restored)
        request.flows = in_order((*self.labels.matches(context, name), *by_values))
        if not request.flows:
            return
        first = request.flows[0]
        if first.flow.action == "deny":
            self._note_decision(request)
            raise flow_denied(request.tool, first)
        request.must_ask = True
        request.reason = " ".join([*map(_asked_about, request.flows), request.reason]).strip()

    async def check(self, request: Request) -> None:
        """Refuse arguments that the tool's own schema does."""
        if not request.is_tool:
            return
        problems = await self._problems(request)
        if problems and await self._fleet.refresh(request.tool.server):
            raise _Outdated
        if problems:
            seen = self._policy.without_bound(request.tool)
            words = "; ".join(str(problem) for problem in problems[:MAX_PROBLEMS])
            raise ToolFailed(
                f"{request.tool.full_name}: {words}. It is called as {wrappers.signature(seen)}",
                "tool_arguments",
            )

    async def pin(self, request: Request) -> None:
        """Compare the definition with the one that was seen first; our own are no server's."""
        is_ours = self._fleet.is_published(request.tool.server)
        if self._policy.pin and not is_ours:
            review = await self._review(request)
            if review == "warn":
                name = request.tool.full_name
                words = f"{name}: its definition has changed since it was first seen"
                log.warning("%s", words)
                request.context.tell(Event("log", text=words, tool=name))
            elif review == "ask":
                request.must_ask = True
                request.reason = f"its definition has changed. {request.reason}".strip()
            self._save_pins()
        self._note_decision(request)

    async def approve(self, request: Request) -> None:
        """Ask the person, where the rules say so or the definition is another than it was."""
        if not request.must_ask:
            return
        tool, context = request.tool, request.context
        shown = preview(request.arguments, tool.input_schema)
        if shown is None:
            raise ToolFailed(
                f"{tool.full_name} needs approval, and {len(request.arguments):,} arguments, or "
                "such long names, are more than a person can read: send fewer",
                "tool_denied",
            )
        approval = Approval(
            tool=tool.full_name,
            arguments=shown,
            reason=request.reason,
            session=context.session,
            key=context.key,
            user=context.user or None,
            run=context.run,
            rule=request.decision.rule,
            flows=tuple(match.number for match in request.flows),
            definition=self.pins.digest(tool),
            values=MappingProxyType(await weight.beside(copy.deepcopy, dict(request.arguments))),
        )
        was_listed = self._catalog.lists(tool)
        await self.approvals.ask(approval, self._approver(context))
        if was_listed and not self._catalog.lists(tool):
            raise ToolFailed(
                f"{tool.full_name} was changed by its server while the person was asked: "
                "look at it again, then call it again",
                "tool_denied",
            )
        if not self._fleet.is_published(tool.server):
            if self._shared_pins is None:
                self.pins.approve(tool)
                self._save_pins()
            else:
                await self._shared_pins.approve(tool, self.pins.digest(tool))

    def _approver(self, context: CallContext) -> Approver | None:
        first = ElicitingApprover(context.asker) if context.asker else self._on_approval
        if first is None or self.also_asked is None:
            return first or self.also_asked
        return FirstOf((first, self.also_asked))

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        """Ask the person whether a cell may run in which a review has found something.

        A yes that holds for more than one cell is for findings of the same kinds.

        Raises:
            ToolFailed: the person said no, or nobody could be asked.
        """
        approval = Approval(
            tool=RUN,
            arguments=findings,
            reason="a review of the code has found what the rules here want you to see",
            session=context.session,
            key=context.key,
            user=context.user or None,
            run=context.run,
            definition=f"review: {kinds}",
        )
        await self.approvals.ask(approval, self._approver(context))

    async def intend(self, request: Request) -> None:
        """Have it written down by those who keep everything, before it leaves.

        A call of a tool is made ready meanwhile, and held at the connection: see `Departure`.
        """
        context, name = request.context, request.tool.full_name
        who = (context.principal, context.key, context.run, request.by, request.kind)
        sent = CallSent(request.number, *who, name, request.arguments)
        with _no_call_was_made(name):
            request.departure = Departure(await self._journal.begin(sent))
            if not request.is_tool or self._fleet.is_published(request.tool.server):
                await request.departure.allowed()

    async def send(self, request: Request) -> None:
        """Put it to its server, or to the function that it is for.

        The conversation is labelled first. Whatever happens then may bring something back.
        """
        assert request.send is not None
        server, context = request.tool.server, request.context
        source = Source(request.tool.full_name, context.cell)
        self.labels.add(context.holder, context.user, source)
        await self.labels.settled(context.user)
        if self._fleet.is_published(server):
            await self._ask_host(request)
            return
        await self._fleet.begin(server)
        upstream = self._fleet.upstream(server, context.key)
        entry = self._fleet.server(server)
        timeout = (entry.timeout if entry else None) or self._policy.tool_timeout
        context.sent = True
        request.spool = upstream.spool
        try:
            with _no_call_was_made(request.tool.full_name):
                request.result = await request.send(upstream, request, timeout)
        finally:
            if request.departure is not None and request.departure.is_held:
                context.sent = False

    async def _ask_host(self, request: Request) -> None:
        context, timeout = request.context, self._policy.tool_timeout
        if request.kind == "list":
            request.result = []
        elif request.is_tool:
            context.sent = True
            result = await self._host.call(request.tool, request.arguments, context, timeout)
            request.result = result if request.by == "code" else result.for_client()
        else:
            words = f"{request.tool.server} has functions only: no resources, and no prompts"
            raise ToolFailed(words, "tool_unknown")

    async def check_result(self, request: Request) -> None:
        """Refuse a result that is too large, or for code not what the server has promised."""
        if request.by == "client":
            if request.is_tool and request.spool is not None:
                request.personal = take_values(request.spool, request.result.meta)
            size = await weight.beside(_size, request.result)
            self._policy.check_result_size(request.tool.full_name, size)
        elif request.is_tool:
            if request.spool is not None:
                request.personal = take_values(request.spool, request.result.meta)
                request.table = take(request.spool, request.result.meta)
            if request.table is None:
                request.wire = await outcome.wire_of(request.tool, request.result)
        elif request.form is not None:
            request.wire = await weight.beside(request.form.made, request.result)

    async def screen(self, request: Request) -> None:
        """Pass what goes back into a session over the border; clients have an exit of their own."""
        principal, origin = request.context.principal, request.tool.full_name
        if request.personal:
            # A table is a file: what is personal in it is learned from its values, told apart. Of
            # what a client gets of it as text, nobody would know which columns they are.
            told = {"content": [{"type": "text", "text": request.personal}]}
            await self._border.outward(told, principal, "sandbox", origin)
        if request.wire is not None:
            request.wire = await self._border.outward(request.wire, principal, "sandbox", origin)
        elif request.by == "client" and type(self._border) is not OpenBorder:
            # A client's exit knows neither the tool nor its fields.
            dumped = await weight.beside(_dumped, request.result)
            passed = await self._border.outward(dumped, principal, "sandbox", origin)
            if passed != dumped:
                request.result = await weight.beside(_made_again, (request.result, passed))

    async def pack(self, request: Request) -> None:
        """Write down what goes back into a session; a table goes as the file that it is."""
        if request.table is not None:
            request.answer = Answer(b"", "table", request.table.remark, request.table)
        if request.wire is not None:
            kind = "tool" if request.form is None else request.form.kind
            request.answer = Answer(await weight.beside(_compact, request.wire), kind)
            size = len(request.answer.body)
            self._policy.check_result_size(request.tool.full_name, size)

    # What they share

    async def _problems(self, request: Request) -> list[Problem]:
        known = self._policy.without_bound(request.tool).input_schema or {}
        found = await check.checked(request.given, known)
        return found or check.unknown_names(request.given, known)

    def _note_decision(self, request: Request) -> None:
        decision, match = request.decision, next(iter(request.flows), None)
        action, reason = "ask" if request.must_ask else decision.action, decision.reason
        if match is not None:
            action, reason = match.flow.action, match.flow.reason or reason
        tool = request.tool.full_name
        decided = CallDecided(request.number, tool, action, decision.rule, reason)
        if match is not None:
            decided = replace(decided, flow=match.number, source=match.source.tool)
        self._journal.note(decided)

    async def _review(self, request: Request) -> Review:
        tool, action = request.tool, request.decision.action
        if self._shared_pins is None:
            return self.pins.review(tool, action)
        return await self._shared_pins.review(tool, self.pins.digest(tool), action)

    def _save_pins(self) -> None:
        if self.pins.unsaved and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(asyncio.to_thread(self.pins.save))


def flow_denied(tool: Tool, match: FlowMatch) -> ToolFailed:
    """Return the error for a call that a rule about flows refuses."""
    reason = f" ({match.flow.reason})" if match.flow.reason else ""
    if match.token:
        return ToolFailed(
            f"{tool.full_name} is denied by policy: {match.token} came from {match.source}, and "
            f"flow rule {match.number} keeps {match.flow.words} from there away from this "
            f"tool{reason}. Go on without that value, and tell the person",
            "tool_denied",
        )
    return ToolFailed(
        f"{tool.full_name} is denied by policy: this conversation has data of {match.source}, and "
        f"flow rule {match.number} keeps it from there{reason}. It holds whatever the arguments "
        "are, and until the conversation ends: go on without this call, and tell the person",
        "tool_denied",
    )


def _asked_about(match: FlowMatch) -> str:
    """Say to the person which data may be in a call."""
    reason = f": {match.flow.reason}" if match.flow.reason else ""
    if match.token:
        kind = tokens.kind_of(match.token).lower()
        return (
            f"It holds a value ({kind}) that came from {match.source} "
            f"(flow rule {match.number}{reason})."
        )
    return (
        f"It may hold data of {match.source}, which this conversation has "
        f"(flow rule {match.number}{reason})."
    )


def _written(given: Mapping[str, Any]) -> bytes:
    return json.dumps(given).encode()


def _compact(wire: Mapping[str, Any]) -> bytes:
    return json.dumps(wire, separators=(",", ":")).encode()


def _dumped(result: Any) -> list[Any]:
    items = result if isinstance(result, list) else [result]
    return [item.model_dump(by_alias=True, mode="json") for item in items]


def _made_again(pair: tuple[Any, list[Any]]) -> Any:
    """A result with other content."""
    result, dumped = pair
    items = result if isinstance(result, list) else [result]
    made = [
        type(item).model_validate(each, by_name=False)
        for item, each in zip(items, dumped, strict=True)
    ]
    return made if isinstance(result, list) else made[0]


def _size(result: Any) -> int:
    items = result if isinstance(result, list) else [result]
    return sum(len(item.model_dump_json(by_alias=True)) for item in items)


async def _parsed(request: Request, arguments: bytes) -> dict[str, Any]:
    try:
        if len(arguments) <= LARGE_ARGUMENTS and not weight.is_heavier(arguments, HEAVY_ARGUMENTS):
            return frames.parse(arguments)
        rest = request.rest = COLLECTOR.rest()
        parse = functools.partial(frames.parse, arguments)
        given = await weight.in_thread(lambda: rest.begin_with(parse))
        rest.end_within(LONGEST_REST)
        return given
    except frames.FrameError as error:
        name, words = request.name[:MAX_NAME], str(error).removeprefix("the header ")
        raise ToolFailed(f"{name}: the arguments: {words}", "tool_arguments") from None
