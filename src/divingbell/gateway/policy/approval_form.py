"""The form by which the person behind an MCP client is asked for an approval."""

from collections.abc import Mapping
from typing import ClassVar

from divingbell.gateway.context import ApprovalAsker, Asker
from divingbell.gateway.policy.approvals import MAX_COMMENT, Answer, Approval, NobodyThere, Word
from divingbell.gateway.policy.preview import label
from divingbell.text import one_line


class ElicitingApprover:
    """Asks the person behind an MCP client, with a form."""

    CHOICES: ClassVar[Mapping[str, Word]] = {
        "yes": "yes",
        "yes to all like this in this run": "always",
        "yes to all like this in this session": "session",
        "no": "no",
    }

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def __eq__(self, other: object) -> bool:
        """Two that ask the same client ask the same person, who is asked one thing at a time."""
        return isinstance(other, ElicitingApprover) and self._person is other._person

    def __hash__(self) -> int:
        return hash((ElicitingApprover, id(self._person)))

    @property
    def _person(self) -> object:
        """The one who is asked, whoever stands between."""
        return getattr(self._asker, "person", self._asker)

    async def __call__(self, approval: Approval) -> Answer:
        from mcp_types import ElicitRequestFormParams

        schema = {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "May this call be made?",
                    "enum": list(self.CHOICES),
                },
                "comment": {"type": "string", "title": "A word to the code (optional)"},
            },
            "required": ["decision"],
        }
        params = ElicitRequestFormParams(message=question(approval), requested_schema=schema)
        asker = self._asker
        ask = asker.approve if isinstance(asker, ApprovalAsker) else asker.elicit
        result = await ask(params)
        content = result.content or {}
        if result.action != "accept":
            return Answer("no")
        decision, comment = content.get("decision"), content.get("comment")
        word = self.CHOICES.get(decision) if isinstance(decision, str) else None
        if word is None:
            raise NobodyThere("the answer was not understood")
        return Answer(word, comment if isinstance(comment, str) else "")


def question(approval: Approval) -> str:
    """Return the question as text of several lines."""
    lines = [f"The code wants to call {label(approval.tool)}."]
    if approval.reason:
        lines.append(f"Why you are asked: {one_line(approval.reason, MAX_COMMENT)}")
    if approval.waiting:
        lines.append(f"{approval.waiting:,} more calls like this one wait for your answer.")
    return "\n".join([*lines, approval.arguments or "It has no arguments."])
