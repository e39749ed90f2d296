"""Going on with a conversation in a new session: what has come back, and what has not."""

from dataclasses import dataclass

from divingbell.agent.history import Asked
from divingbell.agent.keeping import Conversation
from divingbell.agent.kept_log import Written
from divingbell.agent.names import bound_in
from divingbell.agent.records import cells_in, texts_of
from divingbell.border.border import Border
from divingbell.errors import ConfigError, DiskFull, UnknownToken
from divingbell.session.base import SessionHandle
from divingbell.session.notebook import counted
from divingbell.text import one_line

MOST_NAMES = 40
MOST_CODE = 60
"""Characters of a line of code, a name or a type. Whoever wrote them may mean harm."""
TOKENS_GONE = (
    "some words in it that stand for hidden values are no longer known: the vault has forgotten "
    "them ([vault] keep says when)"
)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What has come of a conversation in its new session."""

    text: str
    """For the person."""
    entry: Asked
    """The same for the model: the last of what it is told before the next question."""


@dataclass(frozen=True, slots=True)
class GoneName:
    """A variable that has not come back."""

    name: str
    type: str
    """Empty where it is not known."""
    cell: int
    """The number of the cell that has made it; 0 where no cell says so."""
    code: str = ""
    """The line of that cell which makes it."""

    def __str__(self) -> str:
        kind = f" ({one_line(self.type, MOST_CODE)})" if self.type else ""
        code = one_line(self.code.strip(), MOST_CODE)
        made = f", made by cell {self.cell}: {code}" if self.cell else ""
        return f"{one_line(self.name, MOST_CODE)}{kind}{made}"


async def resume(conversation: Conversation, session: SessionHandle, border: Border) -> Resumed:
    """Put the files of a conversation into a new session, and say what is there and what is not.

    Nothing is run. What stood for hidden values is known again, where the vault has it.

    Raises:
        DivingbellError: the session does not take them.
    """
    lines = await _files(conversation, session)
    gone = gone_names(conversation.written)
    if not await _remember(conversation, session, border):
        lines.append(TOKENS_GONE)
    names = [f"  {name}" for name in gone[:MOST_NAMES]]
    if len(gone) > MOST_NAMES:
        names.append(f"  … and {len(gone) - MOST_NAMES:,} more")
    if gone:
        lines.append("variables do not come back; these are gone:")
    told = "\n".join([*lines, *names])
    shown = [f"{conversation.name} goes on in a new session", *lines, *names]
    advice = "Nothing was run again. Run again what you need of it, once you need it."
    note = f"[The conversation goes on in a new session.\n{told}\n{advice}]"
    note = await border.outward(note, session.principal)  # names of files may be personal
    return Resumed("\n".join(shown), Asked(note))


def gone_names(written: Written) -> list[GoneName]:
    """Return the variables that there were, and the cell that has made each."""
    makers: dict[str, tuple[int, str]] = {}
    names = dict(written.names)
    cells = cells_in(written.entries, written.cells)
    for number, (place, cell) in enumerate(cells.items(), start=1):
        bound = bound_in(cell.code)
        makers |= {name: (number, line) for name, line in bound.items()}
        if place >= written.named:  # nobody has looked after it at what there is
            names |= {name: "" for name in bound if name not in names}
    return [
        GoneName(name, kind, *makers.get(name, (0, "")))
        for name, kind in sorted(names.items())
        if not name.startswith("_")
    ]


async def _files(conversation: Conversation, session: SessionHandle) -> list[str]:
    try:
        files = await conversation.files()
        count = len(files.kept)
        damaged = await files.restore(session.files)
    except (ConfigError, DiskFull) as error:
        return [f"files have not come back: {error}"]
    back = count - len(damaged)
    lines = [f"{counted(back, 'file')} back in /workspace"] if back else []
    if damaged:
        names = [one_line(path, MOST_CODE) for path in damaged[:MOST_NAMES]]
        lines.append(f"damaged, so not there: {', '.join(names)}")
    return lines


async def _remember(conversation: Conversation, session: SessionHandle, border: Border) -> bool:
    """Have the border know again what tokens stand for; return whether it knows all of them."""
    known = True
    for entry in conversation.written.entries:
        try:
            await border.restored(texts_of(entry), session.principal)
        except UnknownToken:
            known = False
    return known
