"""Three pieces of work with much to read or to wait for, done by direct calls and by code.

1,000 expenses are filtered and summed; reminders go out over three servers; an export is polled
until it is done. Each script computes its answer from what it was shown.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conversing import Script
from mcp.server import MCPServer

from divingbell.agent.history import Answered, Call
from divingbell.agent.model import ModelRequest
from divingbell.agent.scripted import Says

PAGE, PAGES = 20, 50
"""A page has fewer than 2,000 tokens, so that a model that calls directly is shown all of it."""
OVERDUE = 12
LOOKS = 15
Records = list[dict[str, Any]]


@dataclass
class Work:
    """One piece of work: its servers, the question, and a script for each way of doing it."""

    name: str
    question: str
    servers: Mapping[str, MCPServer]
    answer: Callable[[], str]
    """Returns what the answer must be; for work that changes something, what was done."""
    scripts: Mapping[str, Callable[[], Script]]
    """By the way: sequential, parallel or code."""
    reset: Callable[[], None] = lambda: None
    aim: int | None = None
    """Per cent of input tokens that code should spare."""


def all_work() -> list[Work]:
    """Return the three pieces of work."""
    return [expenses(), reminders(), export()]


def results(request: ModelRequest) -> list[Any]:
    """Return what calls have returned so far."""
    return [json.loads(each.text) for each in request.entries if isinstance(each, Answered)]


def _calls(request: ModelRequest, *calls: tuple[str, dict[str, Any]]) -> Says:
    first = len(request.entries)
    return Says(
        calls=tuple(
            Call(f"call_{first + number}", name, json.dumps(arguments))
            for number, (name, arguments) in enumerate(calls)
        )
    )


def _code(code: str, answer: Callable[[str], str]) -> Callable[[], Script]:
    """Return a script that runs one cell and answers with what it has printed."""

    def script(request: ModelRequest) -> Says:
        last = request.entries[-1]
        return Says(answer(last.text)) if isinstance(last, Answered) else Says(code=code)

    return lambda: script


# 1,000 expenses


def _expenses() -> Records:
    chance = random.Random(1)
    kinds, teams = ("travel", "meals", "software", "hardware"), ("boats", "pumps", "ropes")
    return [
        {
            "id": f"EXP-{number:05}",
            "employee": f"E{chance.randint(100, 199)}",
            "team": chance.choice(teams),
            "category": chance.choice(kinds),
            "merchant": f"Merchant {chance.randint(1, 80)}",
            "date": f"2026-{chance.randint(1, 9):02}-{chance.randint(1, 28):02}",
            "amount": chance.randint(500, 90_000) / 100,
            "currency": "EUR",
            "status": chance.choice(("approved", "approved", "pending", "rejected")),
            "receipt": f"https://receipts.example.org/{chance.getrandbits(48):012x}.pdf",
        }
        for number in range(PAGE * PAGES)
    ]


def _sums(records: Records) -> str:
    totals: dict[str, float] = {}
    for each in records:
        if each["category"] == "travel" and each["status"] == "approved":
            totals[each["team"]] = totals.get(each["team"], 0.0) + each["amount"]
    return ", ".join(f"{team} {totals[team]:.2f}" for team in sorted(totals))


EXPENSES_CODE = """\
from servers.finance import list_expenses

first = list_expenses(page=1)
expenses = list(first["expenses"])
for page in range(2, first["pages"] + 1):
    expenses += list_expenses(page=page)["expenses"]
totals = {}
for each in expenses:
    if each["category"] == "travel" and each["status"] == "approved":
        totals[each["team"]] = totals.get(each["team"], 0) + each["amount"]
print(", ".join(f"{team} {totals[team]:.2f}" for team in sorted(totals)))"""


def expenses() -> Work:
    records = _expenses()
    server = MCPServer("finance", log_level="ERROR")

    @server.tool()
    def list_expenses(page: int) -> dict[str, Any]:
        """List the company's expenses, a page of them at a time, from page 1 on."""
        return {
            "page": page,
            "pages": PAGES,
            "expenses": records[(page - 1) * PAGE : page * PAGE],
        }

    def direct(request: ModelRequest, at_once: bool) -> Says:
        seen = results(request)
        if len(seen) == PAGES:
            return Says(_sums([each for page in seen for each in page["expenses"]]))
        last = seen[0]["pages"] if seen and at_once else len(seen) + 1
        pages = range(len(seen) + 1, last + 1)
        return _calls(request, *(("finance__list_expenses", {"page": page}) for page in pages))

    return Work(
        "1,000 expenses filtered and summed",
        "What have approved travel expenses come to, for each team?",
        {"finance": server},
        lambda: _sums(records),
        {
            "sequential": lambda: lambda request: direct(request, False),
            "parallel": lambda: lambda request: direct(request, True),
            "code": _code(EXPENSES_CODE, str.strip),
        },
        aim=95,
    )


# Reminders, over three servers

REMINDERS_CODE = """\
from servers.billing import list_invoices
from servers.crm import get_customer
from servers.mail import send_message

invoices = list_invoices(status="overdue")["invoices"]
for invoice in invoices:
    customer = get_customer(customer_id=invoice["customer_id"])
    send_message(
        to=customer["email"],
        subject=f"Invoice {invoice['number']}",
        text=f"Dear {customer['name']}, invoice {invoice['number']} is overdue.",
    )
print(len(invoices), "reminders were sent")"""


def reminders() -> Work:
    sent: list[tuple[str, str, str]] = []
    invoices = [
        {
            "number": f"2026-{100 + number}",
            "customer_id": f"C{number:03}",
            "amount": 120.5 * (number + 1),
            "due": f"2026-10-{number + 1:02}",
            "status": "overdue" if number < OVERDUE else "paid",
        }
        for number in range(30)
    ]
    billing, crm, mail = (MCPServer(name, log_level="ERROR") for name in ("billing", "crm", "mail"))

    @billing.tool()
    def list_invoices(status: str) -> dict[str, Any]:
        """List invoices by their status: open, paid or overdue."""
        return {"invoices": [each for each in invoices if each["status"] == status]}

    @crm.tool()
    def get_customer(customer_id: str) -> dict[str, Any]:
        """Get a customer: name, address, contacts."""
        return {
            "id": customer_id,
            "name": f"Customer {customer_id}",
            "email": f"{customer_id.lower()}@example.org",
            "phone": "+47 22 00 00 00",
            "address": {"street": "Quay 1", "city": "Oslo", "zip": "0150", "country": "NO"},
            "segment": "retail",
            "since": "2021-04-01",
        }

    @mail.tool()
    def send_message(to: str, subject: str, text: str) -> dict[str, Any]:
        """Send an email."""
        sent.append((to, subject, text))
        return {"id": f"M{len(sent)}", "state": "sent"}

    def done() -> str:
        return f"{len(sent)} reminders were sent"

    def direct(request: ModelRequest, most: int) -> Says:
        seen = results(request)
        if not seen:
            return _calls(request, ("billing__list_invoices", {"status": "overdue"}))
        found, others = seen[0]["invoices"], seen[1:]
        customers = [each for each in others if "email" in each]
        messages = len(others) - len(customers)
        if len(customers) < len(found):
            left = found[len(customers) :][:most]
            wanted = [("crm__get_customer", {"customer_id": each["customer_id"]}) for each in left]
            return _calls(request, *wanted)
        pairs = list(zip(found, customers, strict=True))[messages:][:most]
        if not pairs:
            return Says(f"{messages} reminders were sent")
        return _calls(request, *(_message(*pair) for pair in pairs))

    return Work(
        "a workflow over three servers, 25 calls",
        "Send a reminder to each customer who has an overdue invoice.",
        {"billing": billing, "crm": crm, "mail": mail},
        done,
        {
            "sequential": lambda: lambda request: direct(request, 1),
            "parallel": lambda: lambda request: direct(request, OVERDUE),
            "code": _code(REMINDERS_CODE, str.strip),
        },
        sent.clear,
    )


def _message(invoice: dict[str, Any], customer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    text = f"Dear {customer['name']}, invoice {invoice['number']} is overdue."
    subject = f"Invoice {invoice['number']}"
    return "mail__send_message", {"to": customer["email"], "subject": subject, "text": text}


# A job that is polled

EXPORT_CODE = """\
import time
from servers.exports import export_state, start_export

job = start_export(what="orders")
while (state := export_state(job=job["job"]))["state"] != "done":
    time.sleep(0.01)
print(state["rows"], "rows")"""


@dataclass
class _Export:
    """A job that is done once it has been looked at often enough."""

    looks: int = field(default=0)

    def reset(self) -> None:
        self.looks = 0


def export() -> Work:
    job = _Export()
    server = MCPServer("exports", log_level="ERROR")

    @server.tool()
    def start_export(what: str) -> dict[str, Any]:
        """Start an export, which takes a while."""
        return {"job": "J7", "state": "queued"}

    @server.tool()
    def export_state(job: str) -> dict[str, Any]:
        """Look how far an export is."""
        return looked()

    def looked() -> dict[str, Any]:
        job.looks += 1
        if job.looks < LOOKS:
            return {"job": "J7", "state": "running", "done": job.looks / LOOKS}
        return {"job": "J7", "state": "done", "rows": 4_812}

    def direct(request: ModelRequest) -> Says:
        seen = results(request)
        if not seen:
            return _calls(request, ("exports__start_export", {"what": "orders"}))
        if seen[-1]["state"] != "done":
            return _calls(request, ("exports__export_state", {"job": seen[0]["job"]}))
        return Says(f"{seen[-1]['rows']} rows")

    return Work(
        f"a job that is polled, {LOOKS} looks",
        "Export the orders. How many rows are there?",
        {"exports": server},
        lambda: "4812 rows" if job.looks == LOOKS else f"{job.looks} looks",
        {
            "sequential": lambda: direct,
            "parallel": lambda: direct,  # no look can be taken before the one before
            "code": _code(EXPORT_CODE, str.strip),
        },
        job.reset,
    )
