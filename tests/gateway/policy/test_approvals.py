"""A call that needs a yes gets it from a person, or is refused."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from divingbell.errors import ToolFailed
from divingbell.gateway.policy.approval_form import ElicitingApprover, question
from divingbell.gateway.policy.approvals import (
    MAX_OPEN,
    Answer,
    Approval,
    Approvals,
    Approver,
    FirstOf,
    NobodyThere,
)
from divingbell.journal.journal import Journal

PATIENCE = 30.0
ASKED = Approval("github.star", 'repo: "x"', "writes to GitHub", "id", "s", "u", 1, 1, "hash")


class Person:
    """Answers when told to."""

    def __init__(self) -> None:
        self.questions: asyncio.Queue[Approval] = asyncio.Queue()
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.open = 0
        self.most_open = 0

    async def __call__(self, approval: Approval) -> Any:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            self.questions.put_nowait(approval)
            return await self.answers.get()
        finally:
            self.open -= 1


def saying(*words: Any) -> tuple[Approver, list[Approval]]:
    """An approver that gives these answers, and the list of what it was asked."""
    asked, left = list[Approval](), list(words)

    async def approver(approval: Approval) -> Any:
        asked.append(approval)
        return left.pop(0)

    return approver, asked


async def refused(approvals: Approvals, approver: Approver | None, asked: Approval = ASKED) -> str:
    with pytest.raises(ToolFailed) as caught:
        async with asyncio.timeout(PATIENCE):
            await approvals.ask(asked, approver)
    assert caught.value.code == "tool_denied"
    return str(caught.value)


async def test_a_yes_is_for_one_call() -> None:
    approvals, (approver, asked) = (
        Approvals(PATIENCE, Journal()),
        saying(True, "yes", Answer("yes", "ok")),
    )
    for comment in ("", "", "ok"):
        assert await approvals.ask(ASKED, approver) == Answer("yes", comment)
    assert len(asked) == 3


async def test_a_no_is_told_with_its_comment() -> None:
    approvals, (approver, _) = (
        Approvals(PATIENCE, Journal()),
        saying(False, "no", Answer("no", "not\x1b[2J now")),
    )
    expected = "github.star was denied by the person who was asked"
    assert await refused(approvals, approver) == expected
    assert await refused(approvals, approver) == expected
    assert await refused(approvals, approver) == expected + ": not now"


async def test_always_is_for_the_like_until_the_run_ends() -> None:
    approvals, (approver, asked) = Approvals(PATIENCE, Journal()), saying("always", "yes")
    for _ in range(3):
        await approvals.ask(ASKED, approver)
    assert len(asked) == 1
    approvals.end_run("another")
    await approvals.ask(ASKED, None)
    approvals.end_run("s")
    await approvals.ask(ASKED, approver)
    assert len(asked) == 2


async def test_always_is_not_for_another_run_however_late_it_comes() -> None:
    """A call is left over from a cell; its person answers when the next cell runs."""
    approvals, person, (approver, asked) = Approvals(PATIENCE, Journal()), Person(), saying("yes")
    async with asyncio.timeout(PATIENCE):
        late = asyncio.create_task(approvals.ask(ASKED, person))
        await person.questions.get()
        approvals.end_run("s")
        person.answers.put_nowait("always")
        await late
    await approvals.ask(replace(ASKED, run=2), approver)
    assert len(asked) == 1


async def test_between_two_cells_there_is_no_run_that_always_could_be_for() -> None:
    approvals, (approver, asked) = Approvals(PATIENCE, Journal()), saying("always", "yes", "yes")
    await approvals.ask(replace(ASKED, run=0), approver)
    await approvals.ask(replace(ASKED, run=0), approver)
    await approvals.ask(replace(ASKED, run=1), approver)
    assert len(asked) == 3


async def test_an_answer_after_the_end_of_its_session_is_for_no_later_one() -> None:
    """A client that calls directly has the same key again when it comes back."""
    approvals, person, (approver, asked) = Approvals(PATIENCE, Journal()), Person(), saying("yes")
    async with asyncio.timeout(PATIENCE):
        late = asyncio.create_task(approvals.ask(ASKED, person))
        await person.questions.get()
        approvals.forget("s")
        person.answers.put_nowait("session")
        await late
    await approvals.ask(ASKED, approver)
    assert len(asked) == 1


async def test_session_is_for_the_like_until_the_session_ends() -> None:
    approvals, (approver, asked) = Approvals(PATIENCE, Journal()), saying("session", "yes")
    await approvals.ask(ASKED, approver)
    approvals.end_run("s")
    await approvals.ask(ASKED, approver)
    assert len(asked) == 1
    approvals.forget("s")
    await approvals.ask(ASKED, approver)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, tool="github.delete"),
        replace(ASKED, key="other"),
        replace(ASKED, rule=2),
        replace(ASKED, rule=None),
        replace(ASKED, definition="changed"),
    ],
)
async def test_what_is_not_alike_is_asked_about(other: Approval) -> None:
    approvals, (approver, asked) = Approvals(PATIENCE, Journal()), saying("session", "no")
    await approvals.ask(ASKED, approver)
    await refused(approvals, approver, other)
    assert len(asked) == 2


async def test_nobody_to_ask_is_a_no() -> None:
    said = await refused(Approvals(PATIENCE, Journal()), None)
    assert said.startswith("github.star needs approval (writes to GitHub) and has none")


@pytest.mark.parametrize("answer", [None, 1, "maybe", "", "YES ", {}, Answer("perhaps")])  # type: ignore[arg-type]
async def test_an_answer_that_makes_no_sense_is_a_no(answer: Any) -> None:
    approver, _ = saying(answer)
    assert "the answer was not understood" in await refused(
        Approvals(PATIENCE, Journal()), approver
    )


async def test_no_answer_in_time_is_a_no() -> None:
    assert "no answer came in 0.01 s" in await refused(Approvals(0.01, Journal()), Person())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NobodyThere("there is no terminal"), "there is no terminal"),
        (RuntimeError("password=hunter2"), "the question failed with RuntimeError"),
        (TimeoutError("hunter2"), "the question could not be put"),
    ],
)
async def test_asking_that_fails_is_a_no_and_its_secrets_stay_here(
    error: Exception, words: str
) -> None:
    async def approver(_: Approval) -> bool:
        raise error

    said = await refused(Approvals(PATIENCE, Journal()), approver)
    assert words in said and "hunter2" not in said


async def test_a_loop_that_is_allowed_is_asked_about_once() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        tasks = [group.create_task(approvals.ask(ASKED, person)) for _ in range(50)]
        assert (await person.questions.get()).tool == "github.star"
        person.answers.put_nowait("always")
    assert {task.result().word for task in tasks} == {"always"}
    assert person.questions.empty() and person.most_open == 1


async def test_a_loop_that_is_refused_is_asked_about_once() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    async with asyncio.timeout(PATIENCE):
        asking = asyncio.gather(
            *(approvals.ask(ASKED, person) for _ in range(50)), return_exceptions=True
        )
        await person.questions.get()
        person.answers.put_nowait("no")
        done = await asking
    assert all(isinstance(one, ToolFailed) for one in done) and person.questions.empty()
    # What comes later is a new question.
    approver, asked = saying("yes")
    await approvals.ask(ASKED, approver)
    assert len(asked) == 1


async def test_a_plain_yes_is_not_one_for_those_who_wait() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(approvals.ask(ASKED, person))
        waiting = []
        for _ in range(3):
            waiting.append((await person.questions.get()).waiting)
            person.answers.put_nowait("yes")
    assert waiting == [0, 1, 0]  # the first was asked about before the others came


async def test_a_cell_asks_one_thing_at_a_time() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(approvals.ask(replace(ASKED, tool=f"a.t{number}"), person))
        for _ in range(5):
            await person.questions.get()
            person.answers.put_nowait(True)
    assert person.most_open == 1


async def test_nobody_waits_for_the_questions_of_another_cell() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    others = [{"key": "s2"}, {"key": "v", "user": "other"}, {"run": ASKED.run + 1, "tool": "a.b"}]
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for number, change in enumerate(({}, *others), 1):  # and nobody answers
            group.create_task(approvals.ask(replace(ASKED, **change), person))
            await person.questions.get()
            assert person.open == number
        for _ in range(4):
            person.answers.put_nowait(True)


async def test_a_session_has_only_so_many_questions_open() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    kinds = [replace(ASKED, tool=f"a.t{number}") for number in range(MAX_OPEN)]
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for kind in kinds * 2:  # of each kind two: they are one question
            group.create_task(approvals.ask(kind, person))
        await person.questions.get()
        assert "20 questions of this session wait" in await refused(approvals, person)
        others = replace(ASKED, key="t")
        group.create_task(approvals.ask(others, person))
        for _ in range(2 * MAX_OPEN + 1):
            person.answers.put_nowait(True)
    approver, asked = saying(True)
    await approvals.ask(ASKED, approver)
    assert len(asked) == 1


async def test_two_people_can_be_asked_at_once() -> None:
    approvals, one, other = Approvals(PATIENCE, Journal()), Person(), Person()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(approvals.ask(ASKED, one))
        group.create_task(approvals.ask(replace(ASKED, key="t"), other))
        await one.questions.get()
        await other.questions.get()
        one.answers.put_nowait(True)
        other.answers.put_nowait(True)


async def test_a_call_that_is_cancelled_leaves_the_question_to_the_next() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()
    async with asyncio.timeout(PATIENCE):
        first = asyncio.create_task(approvals.ask(ASKED, person))
        await person.questions.get()
        second = asyncio.create_task(approvals.ask(ASKED, person))
        first.cancel()
        await person.questions.get()
        person.answers.put_nowait(True)
        assert (await second).word == "yes"
        assert first.cancelled()


# What is shown


def test_the_question_says_why_and_how_many_wait() -> None:
    assert question(replace(ASKED, waiting=7)).splitlines() == [
        "The code wants to call github.star.",
        "Why you are asked: writes to GitHub",
        "7 more calls like this one wait for your answer.",
        'repo: "x"',
    ]
    assert question(Approval("a.b")).endswith("It has no arguments.")


def test_the_name_of_a_tool_can_not_pass_for_a_sentence() -> None:
    name = "evil.x. It is harmless.\nWhy you are asked: no reason"
    assert question(Approval(name)).splitlines()[0] == (
        'The code wants to call "evil.x. It is harmless.\\nWhy you are asked: no reason".'
    )


# Through an MCP client


class Client:
    def __init__(self, answer: Callable[[], ElicitResult]) -> None:
        self.answer = answer
        self.asked: list[ElicitRequestParams] = []

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        return self.answer()


@pytest.mark.parametrize(
    ("decision", "word"),
    [
        ("yes", "yes"),
        ("yes to all like this in this run", "always"),
        ("yes to all like this in this session", "session"),
    ],
)
async def test_a_person_behind_a_client_is_asked_with_a_form(decision: str, word: str) -> None:
    client = Client(lambda: ElicitResult(action="accept", content={"decision": decision}))
    answer = await Approvals(PATIENCE, Journal()).ask(ASKED, ElicitingApprover(client))
    assert answer.word == word
    [form] = client.asked
    assert isinstance(form, ElicitRequestFormParams)
    assert "github.star" in form.message and 'repo: "x"' in form.message
    assert decision in form.requested_schema["properties"]["decision"]["enum"]


@pytest.mark.parametrize(
    "result",
    [
        ElicitResult(action="accept", content={"decision": "no", "comment": "not this one"}),
        ElicitResult(action="accept", content={"decision": "sure"}),
        ElicitResult(action="accept", content={"decision": ["yes"]}),
        ElicitResult(action="accept"),
        ElicitResult(action="decline", content={"decision": "yes"}),
        ElicitResult(action="cancel"),
    ],
)
async def test_whatever_else_a_client_answers_is_a_no(result: ElicitResult) -> None:
    said = await refused(Approvals(PATIENCE, Journal()), ElicitingApprover(Client(lambda: result)))
    assert ("not this one" in said) is ((result.content or {}).get("comment") is not None)


async def test_a_person_behind_a_client_is_asked_one_thing_at_a_time() -> None:
    approvals, person = Approvals(PATIENCE, Journal()), Person()

    class Busy:
        async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
            await person(ASKED)
            return ElicitResult(action="accept", content={"decision": "yes"})

    client = Busy()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for number in range(3):
            other = replace(ASKED, tool=f"a.t{number}")
            group.create_task(approvals.ask(other, ElicitingApprover(client)))
        for _ in range(3):
            await person.questions.get()
            person.answers.put_nowait(True)
    assert person.most_open == 1


async def test_of_several_who_are_asked_the_first_answer_counts() -> None:
    left: list[str] = []

    async def nobody(approval: Approval) -> str:
        raise NobodyThere("nobody")

    async def slow(approval: Approval) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            left.append("slow")
        return "no"

    async def quick(approval: Approval) -> str:
        return "yes"

    assert await FirstOf((nobody, slow, quick))(Approval("a.b")) == "yes"
    assert left == ["slow"]
    with pytest.raises(NobodyThere, match="nobody"):
        await FirstOf((nobody, nobody))(Approval("a.b"))
