"""Installing: a skill of a catalogue is looked at, shown to a person, and then kept.

What a person has to see is in `Proposal`. `Proposal.doubts` says why somebody must look at it:
without doubts, a program may go on by itself.
"""

import codecs
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.models import Limits
from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.settings.review import ReviewAction, worst
from divingbell.skills import names
from divingbell.skills.catalogue import Catalogue, Offer
from divingbell.skills.record import Kept, Record, first_record
from divingbell.skills.seen import Known, Seen
from divingbell.skills.skill import SCRIPTS, Skill
from divingbell.skills.store import Store
from divingbell.text import is_hiding

MAX_REVIEWED = 50
"""Files of Python that are read. Each takes 45 ms at worst."""
PYTHON = ".py"
READ = (".md", ".py", ".txt")
"""Files that a model reads, or a person."""
RUNNABLE = (
    *(".bash", ".bat", ".cjs", ".cmd", ".fish", ".js", ".lua", ".mjs", ".php", ".pl", ".ps1"),
    *(".rb", ".sh", ".ts", ".vbs", ".zsh"),
    *(".dll", ".dylib", ".exe", ".jar", ".so", ".wasm"),
    *(".egg", ".ipynb", ".pth", ".pyc", ".pyd", ".pyo", ".pyw", ".pyz", ".whl", ".zip"),
)
"""Files that something runs, wherever they are."""
_PROGRAMS = (b"#!", b"\xef\xbb\xbf#!", b"\x7fELF")
"""How programs begin, whatever their names are."""
_NOT_READ = ("syntax", "unread")
"""Findings of a review that has not read the code, or not all of it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A skill that could be installed, with what is known of it."""

    offer: Offer
    known: Known | None
    """What was seen of it before; None if this is the first time."""
    is_known_key: bool
    """Skills of this catalogue with this key were agreed to before, or the key was named."""
    reviews: dict[str, Review]
    """The review of each file of Python."""
    unread: tuple[str, ...]
    """Files that can be run and that nobody has read."""
    hiding: tuple[str, ...]
    """Texts with characters in them that nobody sees."""
    replaces: Kept | None
    """The skill of that name that the user has."""
    is_named: bool = False
    """The person has named its digest."""

    @property
    def skill(self) -> Skill:
        return self.offer.skill

    @property
    def is_there(self) -> bool:
        """Whether the user has just this skill, of this catalogue, already."""
        before = self.replaces
        return _is_of(before, self.offer) and before.skill.digest == self.skill.digest

    @property
    def action(self) -> ReviewAction:
        """What the rules of the review say about all its code."""
        return worst(*(review.action for review in self.reviews.values()))

    @property
    def tools(self) -> list[str]:
        """The tools that it names, in its code and in its head."""
        called = {tool for review in self.reviews.values() for tool in review.tools}
        return sorted(called | set(self.skill.allowed_tools))

    @property
    def doubts(self) -> list[str]:
        """Why a person must look at it; empty if its digest was named, or nothing is new in it.

        A digest that was named says it all: somebody has looked at these very files. A key that
        was agreed to says who publishes, and no more: what its holder does now may be another's
        work. So it is enough only where the review has no question, and nobody's own skill goes.
        """
        return [] if self.is_named else list(self._doubts())

    def _doubts(self) -> Iterator[str]:
        if not self.is_known_key:
            yield "its publisher's key is seen for the first time"
        if self.action in ("ask", "deny"):
            yield "the review has found what a person has to decide"
        if self.unread:
            yield "it has code that the review does not read"
        if self.hiding:
            yield "it has characters that nobody sees"
        if self.replaces is not None and not _is_of(self.replaces, self.offer):
            yield "it takes the place of a skill of yours that came from elsewhere"


def _ends(path: str, *endings: str) -> bool:
    return path.casefold().endswith(endings)


def _can_run(path: str, data: bytes) -> bool:
    """Whether a file can be run. Under scripts/ all can: whatever a model is told to run is there,
    and nothing in a file says that it is no code."""
    is_script = path.casefold().startswith(f"{SCRIPTS}/")
    return is_script or _ends(path, PYTHON, *RUNNABLE) or data.startswith(_PROGRAMS)


def _python(data: bytes) -> str | None:
    """Return the code of a file as Python reads it; None if that is not UTF-8.

    A line such as `coding: utf-7` makes other code of the same bytes.
    """
    # Python ends lines at a lone carriage return too, `readline` of bytes does not.
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(lines).readline)
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
            return None
        return data.decode("utf-8-sig")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _hiding(skill: Skill) -> tuple[str, ...]:
    texts = {path: data for path, data in skill.all_files.items() if _ends(path, *READ)}
    decoded = {path: data.decode("utf-8", "replace") for path, data in texts.items()}
    return tuple(path for path in decoded if is_hiding(decoded[path].replace("\r\n", "\n")))


def _is_of(kept: Kept | None, offer: Offer) -> TypeGuard[Kept]:
    """Whether what the user has came from the same catalogue."""
    where = (kept.record.origin, kept.record.source) if kept else None
    return where == ("catalogue", offer.catalogue)


@dataclass(frozen=True, slots=True)
class Installer:
    """Looks at skills of catalogues for whoever has a store. It blocks: call it in a thread."""

    store: Store
    seen: Seen
    reviewer: Reviewer
    limits: Limits

    def propose(
        self, catalogue: Catalogue, name: str, *, key: str = "", digest: str = ""
    ) -> Proposal:
        """Return a skill of a catalogue, looked at from all sides; nothing is kept yet.

        Args:
            catalogue: Where it is, within a block of its `reading`.
            name: Which one, as a folder or as it is written in code.
            key: The publisher's key, if the person has named it.
            digest: The digest of the skill, if the person has named it.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it is not what was signed, seen before, or named.
            ConfigError: what was seen of catalogues can't be read.
        """
        name = names.of_module(name)
        offer = catalogue.offer(name)
        known = self.seen.check(catalogue.place, offer.statement, key)
        if digest and digest.removeprefix("sha256:") != offer.skill.digest.removeprefix("sha256:"):
            raise SkillRefused(
                f"{name} in {catalogue.place} has the digest {offer.skill.digest}, and not the one "
                "that was named: nothing was installed"
            )
        reviews, unread = self._looked_at(offer.skill)
        return Proposal(
            offer=offer,
            known=known,
            is_known_key=bool(key) or offer.statement.key in self.seen.keys(catalogue.place),
            reviews=reviews,
            unread=unread,
            hiding=_hiding(offer.skill),
            replaces=self._there(name),
            is_named=bool(digest),
        )

    def _looked_at(self, skill: Skill) -> tuple[dict[str, Review], tuple[str, ...]]:
        reviews: dict[str, Review] = {}
        unread = []
        for path, data in skill.files.items():
            code = _python(data) if _ends(path, PYTHON) else None
            if code is not None and len(reviews) < MAX_REVIEWED:
                review = reviews[path] = self.reviewer.review(code, self.limits)
                if any(finding.kind in _NOT_READ for finding in review.findings):
                    unread.append(path)
            elif _can_run(path, data):
                unread.append(path)
        return reviews, tuple(unread)

    def _there(self, name: str) -> Kept | None:
        try:
            return self.store.get(name)
        except SkillMissing:
            return None

    def agree(self, proposal: Proposal) -> Record:
        """Remember the publisher's key of a skill that a person has agreed to; return what is
        known of the skill, to be kept with it.

        Raises:
            SkillRefused: the rules of the review forbid it.
            ConfigError: what was seen of catalogues can't be written.
        """
        if self.reviewer.enabled and proposal.action == "deny":
            refusals = [each.refusal for each in proposal.reviews.values() if each.refusal]
            raise SkillRefused(f"{proposal.skill.name} was not installed: {refusals[0]}")
        # First what was seen: a skill must not be there whose key nobody remembers.
        self.seen.remember(proposal.offer.catalogue, proposal.offer.statement)
        record = first_record("catalogue", proposal.skill, proposal.offer.catalogue)
        return replace(record, key=proposal.offer.statement.key)
