"""The options that choose records of the audit log."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

_RECORDS = Group("Records", sort_key=5)


def _filter(help: str, metavar: str) -> Parameter:
    return Parameter(group=_RECORDS, help=help, metavar=metavar)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """The options of `audit search` and `audit export`. What is not given does not count."""

    user: Annotated[str, _filter("Whose they are.", "NAME")] = ""
    session: Annotated[str, _filter("The key of a session.", "KEY")] = ""
    tool: Annotated[str, _filter("A tool as server.tool, or a server.", "NAME")] = ""
    kind: Annotated[
        str, _filter("What they tell of, such as call, call.ended or execution.", "KIND")
    ] = ""
    outcome: Annotated[
        str, _filter("How it ended: ok, denied, failed, error, timeout …", "WORD")
    ] = ""
    since: Annotated[str, _filter("From this time on, in ISO 8601, UTC.", "TIME")] = ""
    text: Annotated[str, _filter("Words that stand in them, in any case.", "WORDS")] = ""
