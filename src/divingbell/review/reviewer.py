"""The reviewer: code in, findings out. Nothing is run, and no text makes it fail."""

from collections.abc import Callable

from divingbell.models import Limits
from divingbell.review import cell_source, vocabulary
from divingbell.review.cell_source import Magic
from divingbell.review.finding import Finding, Review
from divingbell.review.reader import Bounds, Reader
from divingbell.review.sights import Sight, Sights, shown
from divingbell.settings.review import SEVERITY, ReviewKind, ReviewSettings
from divingbell.shares import weight
from divingbell.shares.collector import COLLECTOR
from divingbell.syntax import parsed
from divingbell.text import one_line

MAX_CODE = 32 << 10
"""Characters that are parsed. Parsing is one call of C, beside which no other thread of this
process runs. Measured: 4 ms for as much of ordinary code, 45 ms for nothing but short lines."""
AT_ONCE = 2 << 10
"""Characters that are looked at on the event loop. Measured: about a millisecond for an ordinary
cell, and four for one that was written to take long."""
MAX_FINDINGS = 100
MAX_WORDS = 200


class Reviewer:
    """Looks at code as the settings say."""

    def __init__(self, settings: ReviewSettings) -> None:
        self._settings = settings

    @property
    def enabled(self) -> bool:
        """Whether code is looked at before it runs."""
        return self._settings.enabled

    async def look(
        self, code: str, limits: Limits, timeout: float, charge: Callable[[float], object]
    ) -> Review:
        """Return the review of a cell: at once, or from a thread if it is long.

        `charge` gets the processor time that it took.
        """

        def work() -> Review:
            return self.review(code, limits, timeout)

        if len(code) <= AT_ONCE:
            return weight.timed(work, charge)
        # The tree has no cycles: with the collector at work, parsing took four times as long.
        return await weight.charged(lambda: COLLECTOR.at_rest(work), charge)

    def review(self, code: str, limits: Limits, timeout: float | None = None) -> Review:
        """Return the review of a cell that has these limits."""
        sights = Sights()
        if len(code) > MAX_CODE:
            what = f"and the rest have {len(code):,} characters; at most {MAX_CODE:,} are read"
            sights.see("unread", 1, what)
            return self._judged(sights)
        seconds = limits.timeout if timeout is None else timeout
        bounds = Bounds(min(seconds, limits.cpu_seconds), limits.memory)
        try:
            _read(code, bounds, sights)
        except SyntaxError as error:
            words = one_line(error.msg or "", MAX_WORDS)
            sights.see("syntax", error.lineno or 1, f"is no Python: {words}")
        except (RecursionError, MemoryError):
            sights.see("unread", 1, "and the rest are nested too deep to be read")
        except ValueError:  # zero bytes, and halves of characters
            sights.see("syntax", 1, "or another one has characters that no code has")
        return self._judged(sights)

    def _judged(self, sights: Sights) -> Review:
        """Return each thing that was seen, once, with what happens about it."""
        for name, line in sights.tools.items():
            sights.see("tool", line, f"calls {name}", name)
        for line, module in sights.modules:
            if not self._settings.lets_in(module):
                what = f"imports {shown(module)}, which is not allowed"
                sights.see("import", line, what, module)
        seen: dict[tuple[str, str], Finding] = {}
        for sight in sorted(sights.items, key=lambda sight: sight.line):
            seen.setdefault((sight.kind, sight.subject or sight.what), self._finding(sight))
        # The most severe first: a hundred harmless lines must not hide another one.
        severe = sorted(seen.values(), key=lambda one: -SEVERITY.index(one.action))
        kept = sorted(severe[:MAX_FINDINGS], key=lambda one: one.line)
        return Review(tuple(kept), tuple(sights.tools)[:MAX_FINDINGS])

    def _finding(self, sight: Sight) -> Finding:
        kind: ReviewKind = sight.kind
        return Finding(
            kind,
            self._settings.action(kind),
            sight.line,
            sight.what,
            vocabulary.ADVICE[kind],
            sight.subject,
        )


def _read(code: str, bounds: Bounds, sights: Sights) -> None:
    """Look at code as the sandbox runs it: as Python, or else as a cell of IPython."""
    try:
        tree = parsed(code)
    except SyntaxError:
        cell = cell_source.read(code)
        for magic in cell.magics:
            _look_at_magic(magic, sights)
        tree = parsed(cell.python)
    Reader(bounds, sights).read(tree)


def _look_at_magic(magic: Magic, sights: Sights) -> None:
    if magic.is_shell:
        name = magic.name if magic.name == cell_source.SHELL else f"%{magic.name}"
        sights.see("process", magic.line, f"starts a process with {name}", name)
        sights.see_shell(magic.rest, magic.line)
    elif magic.name in vocabulary.INSTALLERS:
        sights.see_shell(f"{magic.name} {magic.rest}", magic.line)
    elif magic.name in ("writefile", "file"):
        sights.see_written(magic.rest.split("\n")[0].split()[-1:], magic.line)
    elif magic.name not in vocabulary.QUIET_MAGICS:
        what = f"runs %{shown(magic.name)}, and what that does can't be read"
        sights.see("dynamic", magic.line, what, magic.name)
