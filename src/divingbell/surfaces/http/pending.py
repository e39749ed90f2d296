"""Pending approvals: questions about calls that wait for a person's word over HTTP."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from divingbell.gateway.policy.approvals import Answer, Approval, NobodyThere
from divingbell.surfaces.http.execution import Execution
from divingbell.surfaces.http.moments import as_text
from divingbell.surfaces.http.wire import ApprovalTold

FindExecution = Callable[[str, int], Execution | None]
"""Finds the execution of a cell, by the key of its session and the cell's number."""


@dataclass(eq=False, slots=True)
class Question:
    """One that waits."""

    approval: Approval
    execution: Execution | None
    answer: asyncio.Future[Answer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    asked: float = field(default_factory=time.time)

    def told(self, name: str) -> ApprovalTold:
        """Return it as a person reads it; `name` is that of the session."""
        return ApprovalTold(
            id=str(self.approval.identifier),
            tool=self.approval.tool,
            arguments=self.approval.arguments,
            reason=self.approval.reason,
            session=name,
            cell=self.approval.run,
            execution=None if self.execution is None else self.execution.id,
            waiting=self.approval.waiting,
            asked_at=as_text(self.asked),
        )


Listener = Callable[[Question], None]


class Pending:
    """Puts questions to whoever can answer them over HTTP. It is an `Approver`.

    Only where there is somebody: the question belongs to a run that came by the API, or a page of
    its user is open. All others are told at once that nobody is there, as ever.
    """

    def __init__(self, find: FindExecution) -> None:
        self._find = find
        self._questions: dict[str, Question] = {}
        self._listening: defaultdict[str, list[Listener]] = defaultdict(list)
        """By user, the pages that are open."""

    @contextmanager
    def listening(self, user: str, listener: Listener) -> Iterator[None]:
        """Tell a page of a user's of each question, until the end of the block."""
        self._listening[user].append(listener)
        try:
            yield
        finally:
            self._listening[user].remove(listener)

    async def __call__(self, approval: Approval) -> Answer:
        execution = self._find(approval.key, approval.run)
        listeners = self._listening[approval.user or ""]
        if execution is None and not listeners:
            raise NobodyThere("nobody can be asked: open the console, or use a client that can ask")
        question = Question(approval, execution)
        number = str(approval.identifier)
        self._questions[number] = question
        for listener in listeners:
            listener(question)
        if execution is not None:
            told = question.told(execution.session)
            execution.log.add("approval", {"approval": told})
        word = "nobody"
        try:
            answer = await question.answer
            word = answer.word
            return answer
        finally:
            del self._questions[number]
            if execution is not None:
                execution.log.add("approval_ended", {"id": number, "word": word})

    def of(self, user: str) -> list[Question]:
        """Return the questions of a user, the oldest first."""
        return [each for each in self._questions.values() if (each.approval.user or "") == user]

    def answer(self, user: str, number: str, answer: Answer) -> bool:
        """Answer a question of a user; return whether it was still open."""
        question = self._questions.get(number)
        if question is None or (question.approval.user or "") != user or question.answer.done():
            return False
        question.answer.set_result(answer)
        return True
