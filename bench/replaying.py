"""Scripts that do a task of the shop in the place of a model, one for each way of working.

All of them make the same calls. A script is asked with the request that a model would read, and
calls nothing before its arguments stand there: in the person's words, or in what was shown of
earlier calls. Code may go on with a value that it has not shown where nothing has to be chosen:
with the one id that was found, with all orders of the person, with the items that the person has
named. Before the first call that writes, the person is asked once.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from retail import NAME, Record
from retail_tasks import Step, Task, holds_any, stands_in

from divingbell.agent.history import Answered, Asked, Call
from divingbell.agent.model import ModelRequest
from divingbell.agent.scripted import Says

YES = "Yes, please do that."
DONE = "That is done. Is there anything else?"
Made = Callable[[], Sequence[tuple[str, Record]]]
"""Returns the calls that have reached the shop."""


def shown_in(request: ModelRequest) -> str:
    """Return all that the model has been told: the person's words, and what calls have shown."""
    told = (entry for entry in request.entries if isinstance(entry, Asked | Answered))
    return "\n".join(entry.text for entry in told)


def question(task: Task) -> str:
    """Return what the person is asked before the first call that writes."""
    lines = [f"- {step.name}: {json.dumps(step.arguments)}" for step in task.acts]
    return "\n".join(["I would do this now:", *lines, "Shall I go on?"])


@dataclass
class Script:
    """What all ways have in common."""

    task: Task
    made: Made
    asked: bool = False

    def __call__(self, request: ModelRequest) -> Says:
        """Return the reply to a request."""
        shown = shown_in(request)
        if reply := self.reading(shown):
            return reply
        acts = self.left(self.task.acts)
        if not acts:
            return Says(" ".join([DONE, *self.task.answers]))
        if self.task.writes and not self.asked:
            self.asked = True
            return Says(question(self.task))
        for step in acts:
            if not step.is_known(shown):
                raise RuntimeError(f"task {self.task.number}: {step} is not known yet")
        return self.acting(acts)

    def left(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps that were not made yet."""
        made = [Step(*call) for call in self.made()]
        return [step for step in steps if step not in made]

    def reading(self, shown: str) -> Says | None:
        """Return a reply that goes on reading, if there is something to read."""
        raise NotImplementedError

    def acting(self, acts: Sequence[Step]) -> Says:
        raise NotImplementedError


@dataclass
class DirectScript(Script):
    """Calls the tools themselves."""

    at_once: bool = False
    """All that can be called at one time; else one call in each reply."""
    count: int = 0

    def reading(self, shown: str) -> Says | None:
        left = self.left(self.task.reads)
        ready = [step for step in left if step.is_known(shown)]
        if left and not ready:
            raise RuntimeError(f"task {self.task.number}: nothing of {left} is known")
        return self.acting(ready) if ready else None

    def acting(self, acts: Sequence[Step]) -> Says:
        return Says(calls=tuple(map(self._call, acts if self.at_once else acts[:1])))

    def _call(self, step: Step) -> Call:
        self.count += 1
        return Call(f"call_{self.count}", f"{NAME}__{step.name}", json.dumps(step.arguments))


@dataclass
class Cell:
    """One cell that is being written."""

    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """What it calls."""
    prints: list[tuple[int, str, list[Any]]] = field(default_factory=list)
    """Where it could print, what it would write there, and the records that this shows."""

    def add(self, *lines: str) -> None:
        self.lines += lines

    def may_print(self, line: str, records: Sequence[Any]) -> None:
        """Take it that a line could stand here that prints these records."""
        self.prints.append((len(self.lines), line, list(records)))

    def text(self, is_wanted: Callable[[Any], bool]) -> str:
        """Return the code, which prints the records that are wanted, or all if none is."""
        wanted = [each for each in self.prints if any(map(is_wanted, each[2]))]
        lines = list(self.lines)
        for place, line, _ in reversed(wanted or self.prints):
            lines.insert(place, line)
        return "\n".join(lines)


@dataclass
class CodeScript(Script):
    """Writes cells."""

    prints_all: bool = False
    """Everything that is read, and not only the records that have later arguments in them."""
    chains: bool = True
    """False: code goes on only with plain values, as if the fields of records were not known
    before one was seen."""
    searches: bool = False
    """The tools are not in the prompt: their names are listed, and then how they are called."""
    looks: int = 0
    imported: set[str] = field(default_factory=set)
    records: list[tuple[str, Any]] = field(default_factory=list)
    """What the session has: an expression, and its value."""

    def reading(self, shown: str) -> Says | None:
        if self.searches and self.looks < 2:
            self.looks += 1
            return Says(code=self._look())
        left = self.left(self.task.reads)
        cell = Cell()
        self._show_again(cell, left, shown)
        _Reading(self, cell, left, shown).write()
        if not cell.lines and not cell.prints:
            if left:
                raise RuntimeError(f"task {self.task.number}: nothing of {left} is known")
            return None
        later = [step for step in (*left, *self.task.acts) if step not in cell.steps]
        values = [*(value for step in later for value in step.needs), *self.task.answers]
        code = cell.text(lambda record: self.prints_all or holds_any(record, values))
        return Says(code=self._imports(cell.steps) + code)

    def acting(self, acts: Sequence[Step]) -> Says:
        lines = []
        for step in acts:
            lines.append(f"done = {called(step)}")
            of_order = "order_id" in step.arguments and not self.prints_all
            lines.append('print(done["order_id"], done["status"])' if of_order else "print(done)")
        return Says(code=self._imports(acts) + "\n".join(lines))

    def _look(self) -> str:
        if self.looks == 1:
            return f'print(list_mcp_tools("{NAME}"))'
        names = sorted({step.name for step in self.task.steps})
        return self._imports(self.task.steps) + "\n".join(f"help({name})" for name in names)

    def _imports(self, steps: Sequence[Step]) -> str:
        new = {step.name for step in steps} - self.imported
        self.imported |= new
        return f"from servers.{NAME} import {', '.join(sorted(new))}\n\n" if new else ""

    def _show_again(self, cell: Cell, left: Sequence[Step], shown: str) -> None:
        """Print records once more that were cut away, where they are needed now."""
        steps = [*left, *self.task.acts]
        missing = [value for step in steps for value in step.needs if not stands_in(value, shown)]
        for expression, record in self.records:
            if holds_any(record, missing):
                cell.may_print(f"print({expression})", [record])


@dataclass
class _Reading:
    """The part of a cell that reads."""

    script: CodeScript
    cell: Cell
    left: list[Step]
    shown: str
    new: dict[str, Any] = field(default_factory=dict)
    """Values that this cell has before it has shown them, by their expressions."""
    ended: bool = False
    """The shop refuses something: what is written after it is not run."""

    def write(self) -> None:
        for step in self.of("find_user_id_by_email", "find_user_id_by_name_zip"):
            if step.is_known(self.shown):
                self.one("user_id", step)
        for step in self.of("list_all_product_types"):
            self.one("types", step)
        self.users()
        self.orders()
        self.products()
        for step in self.of("calculate", "think"):
            if step.is_known(self.shown):
                self.cell.steps.append(step)
                self.cell.add(f"print({called(step)})")

    def of(self, *names: str) -> list[Step]:
        """Return the steps of these tools that are left."""
        return [step for step in self.left if step.name in names and step not in self.cell.steps]

    def result(self, step: Step) -> Any:
        return self.script.task.results[self.script.task.reads.index(step)]

    def one(self, name: str, step: Step, call: str | None = None) -> None:
        """Make one call; its result has a name."""
        value = self.result(step)
        self.cell.steps.append(step)
        self.cell.add(f"{name} = {call or called(step)}")
        self.cell.may_print(f"print({name})", [value])
        self.keep(name, value)

    def keep(self, name: str, value: Any) -> None:
        """Take it that the session has a value. What is refused ends the cell."""
        self.ended = self.ended or value is None
        if not self.ended:
            self.new[name] = value
            self.script.records.append((name, value))

    def several(self, name: str, what: str, steps: Sequence[Step], *head: str) -> None:
        """Make one call for each `key`, in a loop that `head` begins; results are in a dict."""
        indent = "    " * len(head)
        argument = next(iter(steps[0].arguments))
        if not self.had(name):
            self.cell.add(f"{name} = {{}}")
        self.cell.add(*("    " * depth + line for depth, line in enumerate(head)))
        self.cell.add(f"{indent}{name}[key] = {what}({argument}=key)")
        self.cell.may_print(f"{indent}print({name}[key])", [self.result(step) for step in steps])
        for step in steps:
            self.cell.steps.append(step)
            self.keep(f"{name}[{step.arguments[argument]!r}]", self.result(step))

    def users(self) -> None:
        for step in self.of("get_user_details"):
            if self.new.get("user_id") == step.arguments["user_id"]:
                self.one("user", step, "get_user_details(user_id=user_id)")
            elif step.is_known(self.shown):
                self.one("user", step)

    def orders(self) -> None:
        steps = self.of("get_order_details")
        known = [step for step in steps if step.is_known(self.shown)]
        others = [step for step in steps if step not in known]
        user = self.new.get("user")
        if self.script.chains and others and user is not None:
            wanted = {step.arguments["order_id"] for step in steps}
            if wanted == set(user["orders"]):
                self.several("orders", "get_order_details", steps, 'for key in user["orders"]:')
                return
        self.literally("orders", "get_order_details", known)

    def literally(self, name: str, what: str, steps: Sequence[Step]) -> None:
        """Make calls with arguments that were shown."""
        if steps:
            keys = [next(iter(step.arguments.values())) for step in steps]
            self.several(name, what, steps, f"for key in {keys!r}:")

    def products(self) -> None:
        steps = self.of("get_product_details")
        known = [step for step in steps if step.is_known(self.shown)]
        others = [step for step in steps if step not in known]
        self.literally("products", "get_product_details", known)
        if not (self.script.chains and others):
            return
        wanted = {step.arguments["product_id"] for step in others}
        loop = self._by_items(wanted) or self._by_types(wanted)
        if loop:
            self.several("products", "get_product_details", others, *loop)

    def _by_items(self, wanted: set[str]) -> tuple[str, ...]:
        """Return the head of a loop over items of orders that are these products; or nothing."""
        items = [item for order in self.had("orders") for item in order["items"]]
        had = {product["product_id"] for product in self.had("products")}
        head = ("for order in orders.values():", 'for item in order["items"]:')
        # A product that several items have is read once.
        unless = 'if (key := item["product_id"]) not in products'
        if {item["product_id"] for item in items} - had == wanted:
            return (*head, f"{unless}:")
        words = self.script.task.words
        named = {item["name"].lower() for item in items if stands_in(item["name"], words)}
        chosen = {item["product_id"] for item in items if item["name"].lower() in named}
        if chosen - had != wanted:
            return ()
        return (*head, f'{unless} and item["name"].lower() in {sorted(named)!r}:')

    def _by_types(self, wanted: set[str]) -> tuple[str, ...]:
        """Return the head of a loop over kinds of products that the person has named."""
        types = self.new.get("types", {})
        words = self.script.task.words
        named = sorted(name for name in types if stands_in(name, words))
        if {types[name] for name in named} != wanted:
            return ()
        return (f"for key in [types[name] for name in {named!r}]:",)

    def had(self, name: str) -> list[Any]:
        """Return the records that the session has under a name."""
        return [value for known, value in self.script.records if known.startswith(f"{name}[")]


def called(step: Step) -> str:
    """Return a call as code."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in step.arguments.items())
    return f"{step.name}({arguments})"
