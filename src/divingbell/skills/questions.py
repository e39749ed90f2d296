"""Answers to what code asks about skills: `save_skill`, `search_skills` and `load_skill`.

They pass the gateway's pipeline as other questions do. The user is the one that the session belongs
to, whatever the arguments say.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from divingbell.border.border import Border
from divingbell.errors import ConfigError, NotRecorded, SkillMissing, SkillRefused, ToolFailed
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.policy.labels import Source
from divingbell.journal import tokens
from divingbell.journal.events import SessionEnded, SkillChanging, SkillSaved, SkillUsed
from divingbell.journal.journal import Journal
from divingbell.models import Limits, Result
from divingbell.principal import Principal
from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.shares import weight
from divingbell.skills import answers, checks, document, names, skill_file
from divingbell.skills.checks import Reading
from divingbell.skills.record import OFFERED, Kept, Record, Summary
from divingbell.skills.search import MAX_LIMIT
from divingbell.skills.shelf import Shelf
from divingbell.skills.skill import Skill
from divingbell.skills.skills import Skills
from divingbell.skills.store import Store
from divingbell.skills.tool_digests import ToolDigests, why_changed
from divingbell.skills.trial import Trials, words
from divingbell.text import one_line, visible

RECEIVED = "load_skill"
"""The name that rules about flows have for a skill that comes into a session: `host.load_skill`."""
PATIENCE = 20.0
"""Seconds for the servers of a skill's tools to list those, before it is compared with them."""
MAX_REASON = 300
MAX_DESCRIPTION = 4_096
"""Characters, once what is hidden in them is written out."""
MAX_INSTRUCTIONS = 20_000
"""Characters of a skill's instructions in a search; its folder has all."""
MAX_REVIEWED = 1_000
"""Skills whose review is remembered; then all are looked at anew."""
QUESTIONS = ("save_skill", "search_skills", "load_skill")
DETAILS = ("name_only", "with_description", "full")


@dataclass(frozen=True, slots=True)
class SkillServices:
    """The parts that skills need of a Divingbell."""

    gateway: Gateway
    border: Border
    reviewer: Reviewer
    limits: Limits
    skills: Skills
    trials: Trials
    journal: Journal


@dataclass(slots=True)
class _Importer:
    """A session that has imported skills."""

    store: Store
    seen: int
    """The revision of the user's skills that was looked at last."""
    changes: int = 0
    """How often they were found changed since then, by whatever process."""


class SkillQuestions:
    """Answers them, for the user of the session that asks."""

    def __init__(self, services: SkillServices) -> None:
        self._services = services
        self._gateway = services.gateway
        self._stores = services.skills.stores
        self._shelf = Shelf(self._stores)
        self._tool_digests = ToolDigests(services.gateway)
        self._reviews: dict[str, Review] = {}
        self._importers: dict[str, _Importer] = {}
        """Sessions that have imported one, by their keys."""

    def register(self) -> None:
        """Have the gateway answer them."""
        for name, question in zip(QUESTIONS, (self.save, self.search, self.load), strict=True):
            self._gateway.register(name, _translated(name, question))
        self._gateway.count_revisions(self._revision)

    # What sessions have imported

    def take(self, event: object) -> None:
        """Watch the journal: sessions end."""
        if isinstance(event, SessionEnded):
            self._importers.pop(event.key, None)

    def _revision(self, key: str) -> int:
        """Return how often the skills were found changed since a session has imported one."""
        importer = self._importers.get(key)
        if importer is None:
            return 0
        now = importer.store.revision
        importer.changes += now != importer.seen
        importer.seen = now
        return importer.changes

    # Saving

    async def save(self, context: CallContext, given: Mapping[str, Any]) -> Answer:
        """Save a skill, once it has passed every check.

        Raises:
            SkillRefused: it has not.
        """
        name, code, description, example = _texts(given)
        name = names.of_module(name)
        store = self._stores.of(context.user)
        # Whether this is refused, and the number of the version, tell of those before it.
        self._add_labels(await asyncio.to_thread(store.labels, name), context)
        reading = await checks.read(names.module(name), code, example)
        texts = {
            "name": given["name"],
            "code": code,
            "description": description,
            "example": reading.example,
        }
        await checks.check_privacy(texts, self._services.border, context.principal)
        review = await self._reviewed(code, context)
        skill = _skill(name, description, reading, review.tools)
        called = await self._services.trials.run(skill, document.example_in(skill.body), context)
        tools = self._digests({*called, *review.tools}, context)
        record = Record(
            "session",
            source=context.session,
            tools=tools,
            labels=self._gateway.labels.sources(context.holder, context.user),
            replaced=(await tokens.count_later(code)).tokens,
        )
        whose, where = context.principal, (context.key, context.cell)
        await self._services.journal.intend(SkillChanging(whose, name, "save", *where))
        kept = await asyncio.to_thread(store.save, skill, record)
        self._add_labels(kept.record.labels, context)
        self._services.journal.note(
            SkillSaved(
                context.principal,
                name,
                kept.version,
                skill.digest,
                record.origin,
                context.key,
                context.cell,
            )
        )
        module = reading.module
        saved = {"name": name, "version": kept.version, "import": f"from skills import {module}"}
        return answers.value(saved, note="; ".join(review.notes))

    async def _reviewed(self, code: str, context: CallContext) -> Review:
        """Return the review of a skill's code, once nothing in it is refused.

        Raises:
            SkillRefused: the rules forbid it, or a person does.
        """
        reviewer, limits = self._services.reviewer, self._services.limits
        seen = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        review = self._reviews.get(seen)
        if review is None:
            review = await reviewer.look(code, limits, limits.timeout, weight.charging())
            if len(self._reviews) >= MAX_REVIEWED:
                self._reviews.clear()
            self._reviews[seen] = review
        if not reviewer.enabled:
            return Review(tools=review.tools)
        if review.refusal:
            raise SkillRefused(review.refusal)
        if asked := review.of("ask"):
            findings = "\n".join(map(str, asked))
            kinds = ", ".join(sorted({finding.kind for finding in asked}))
            await self._gateway.approve_code(context, findings, kinds)
        return review

    def _digests(self, called: set[str], context: CallContext) -> dict[str, str]:
        return self._tool_digests.of(called, context.key)

    # Offering

    async def load(self, context: CallContext, given: Mapping[str, Any]) -> Answer:
        """Return the code of a skill, or all its files.

        What the session that saved it had seen is data of this conversation from now on, before
        anything of the skill comes in.

        Raises:
            SkillMissing: this user has none of that name.
            SkillRefused: it can't be used as it is.
        """
        store = self._stores.of(context.user)
        importer = _Importer(store, store.revision)  # before anything is read
        asked = str(given.get("name"))
        try:
            kept = await self._shelf.get(context.user, names.of_module(asked))
        except SkillMissing as error:
            raise await self._missing(asked, error.near, context) from None
        kept = await self._offered(kept, context)
        if kept.skill.code is not None:
            await self._reviewed(kept.skill.code, context)
        self._label(kept.record, context)
        self._importers.setdefault(context.key, importer)
        used = (kept.skill.name, kept.version, context.key, context.cell, kept.record.replaced)
        self._services.journal.note(SkillUsed(context.principal, *used))
        return await answers.loaded(kept.skill, files=given.get("files") is True)

    async def _missing(self, asked: str, near: Sequence[str], context: CallContext) -> SkillMissing:
        """Say to code that a skill is missing, in its way to write names."""
        store = self._stores.of(context.user)
        for name in near:  # whoever reads a name hears of the skill
            self._add_labels(await asyncio.to_thread(store.labels, name), context)
        shown = [name if "-" in asked else names.module(name) for name in near]
        meant = f"did you mean {', '.join(shown)}? " if near else ""
        return SkillMissing(f"there is no skill {asked}: {meant}search_skills() lists all")

    def _add_labels(self, tools: Iterable[str], context: CallContext) -> None:
        for tool in tools:
            self._gateway.labels.add(context.holder, context.user, Source(tool))

    def _label(self, record: Record, context: CallContext) -> None:
        self._add_labels(record.labels, context)
        self._gateway.received(context.key, context.user, RECEIVED)

    async def _offered(self, kept: Kept, context: CallContext) -> Kept:
        """Return a skill that may be used; where a tool of it has changed, it is tried again."""
        name, store = kept.skill.name, self._stores.of(context.user)
        if unknown := await self._unknown_servers(kept.record.tools, start=True):
            raise SkillRefused(
                f"the skill {name} is not offered now: whether its tools have changed is not "
                f"known, because {self._why_unknown(unknown[0])}. Import it again later"
            )
        changed = self._changed_tools(kept.record, context)
        if not changed and kept.record.state in OFFERED:
            return kept
        why = why_changed(changed) if changed else kept.record.reason
        try:
            example = document.example_in(kept.skill.body)
            if not example:
                raise SkillRefused("it has no example")
            called = await self._services.trials.run(kept.skill, example, context)
        except SkillRefused as error:
            await asyncio.to_thread(store.mark, name, kept.version, "changed", why)
            raise SkillRefused(
                f"the skill {name} is not offered: {why}, and it could not be tried again: {error}"
            ) from None
        tools = {**kept.record.tools, **self._digests({*called, *kept.record.tools}, context)}
        record = await asyncio.to_thread(
            lambda: store.write_record(name, kept.version, tools=tools, state="ready", reason="")
        )
        return replace(kept, record=record)

    async def test(self, name: str, user: str) -> Result:
        """Run the example of a skill with the real tools, and note how it ended.

        Raises:
            SkillMissing: this user has none of that name.
            SkillRefused: it has no example, the review refuses it, or it could not be run.
        """
        kept = await self._shelf.get(user, names.of_module(name))
        skill, store, principal = kept.skill, self._stores.of(user), Principal(user, client="cli")
        example = document.example_in(skill.body)
        if not example or skill.code is None:
            raise SkillRefused(f"the skill {skill.name} has no example that could be run")
        context = CallContext(principal, "", f"test of {skill.name}")
        await self._reviewed(skill.code, context)
        result, called = await self._services.trials.run_live(
            skill, example, principal, lambda asking: self._label(kept.record, asking)
        )
        tools = {**kept.record.tools, **self._digests({*called, *kept.record.tools}, context)}
        changes: dict[str, Any] = {"state": "ready", "reason": "", "tools": tools}
        if result.status != "ok":
            changes = {"state": "failed", "reason": one_line(words(result), MAX_REASON)}
        await asyncio.to_thread(lambda: store.write_record(skill.name, kept.version, **changes))
        return result

    def _changed_tools(self, record: Record, context: CallContext) -> list[str]:
        return self._tool_digests.changed(record, context.key)

    async def _unknown_servers(self, tools: Iterable[str], *, start: bool = False) -> list[str]:
        """Return the servers of tools that have still not listed theirs, after a while.

        Those that can't be used are none: calls of them fail. With `start`, one that has not run
        yet is asked whether the list that was kept of it holds.
        """
        catalog, fleet = self._gateway.catalog, self._gateway.fleet
        servers = {catalog.server_in(tool) or "" for tool in tools}
        named = sorted(name for name in servers if fleet.server(name) is not None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for name in named:
                    await fleet.wait_for_tools(name)
                    if start or not fleet.is_settled(name):
                        await fleet.wait_until_ready(name)
        return [name for name in named if not fleet.is_settled(name)]

    def _why_unknown(self, server: str) -> str:
        try:
            self._gateway.fleet.check(server)
        except ToolFailed as error:
            return str(error)
        return f"the server {server} is still starting"

    async def search(self, context: CallContext, given: Mapping[str, Any]) -> Answer:
        """Return the skills of this user that fit a query, the best first.

        Raises:
            SkillRefused: the arguments are not right.
        """
        detail, limit = given.get("detail_level", "with_description"), given.get("limit", 10)
        if detail not in DETAILS:
            raise SkillRefused(f"detail_level is one of {', '.join(DETAILS)}")
        if type(limit) is not int or limit < 1:
            raise SkillRefused("limit is a whole number from 1 on")
        query = str(given.get("query", ""))
        searched = self._services.skills.searches.of(context.user)
        most = min(limit, MAX_LIMIT)
        found = await searched.find(query, most + 1, all_=True)
        for summary in found:  # also of the one that only tells that there are more
            self._label(summary.record, context)
        more = "there are others: "
        more += f"a larger limit (up to {MAX_LIMIT}) or " if most < MAX_LIMIT else ""
        notes = [f"{more}other words show them"] if len(found) > most else []
        found = found[:most]
        called = {tool for summary in found for tool in summary.record.tools}
        unknown = {*await self._unknown_servers(called)}
        await self._tool_digests.mark_changed(self._stores.of(context.user), found)
        items: list[dict[str, Any]] = []
        left_out: dict[str, list[str]] = {}
        for summary in found:
            if why := self._held_back(summary.record, unknown, context):
                left_out.setdefault(why, []).append(summary.name)
            else:
                items.append(await self._item(summary, str(detail), context.user))
        notes += [f"not offered until {why}: {', '.join(held)}" for why, held in left_out.items()]
        return answers.value(items, f"search_skills: {'; '.join(notes)}" if notes else "")

    def _held_back(self, record: Record, unknown: set[str], context: CallContext) -> str:
        """Say until when a skill is not offered; nothing where it is."""
        servers = {self._gateway.catalog.server_in(tool) for tool in record.tools}
        if waiting := sorted(unknown & servers):
            return f"the tools of {', '.join(waiting)} are known"
        is_offered = record.state in OFFERED and not self._changed_tools(record, context)
        return "" if is_offered else "they were tried again"

    async def _item(self, summary: Summary, detail: str, user: str) -> dict[str, Any]:
        item: dict[str, Any] = {"name": summary.name}
        if detail == "name_only":
            return item
        item |= {
            "description": visible(summary.description, MAX_DESCRIPTION),
            "import": f"from skills import {names.module(summary.name)}"
            if summary.has_code
            else f"skills.path({summary.name!r})",
        }
        if detail == "full":
            kept = await self._shelf.get(user, summary.name)
            item |= {
                "version": summary.version,
                "state": summary.record.state,
                "tools": sorted(summary.record.tools),
                "instructions": visible(kept.skill.body, MAX_INSTRUCTIONS),
                "files": sorted(kept.skill.all_files),
            }
        return item


def _skill(name: str, description: str, reading: Reading, tools: tuple[str, ...]) -> Skill:
    body = document.body(reading, tools)
    files = {f"scripts/{reading.module}.py": reading.code.encode()}
    made_by = {"made-by": "divingbell"}
    return skill_file.make(name, description, body, files, metadata=made_by)


def _texts(given: Mapping[str, Any]) -> tuple[str, str, str, str | None]:
    example = given.get("example")
    found = [given.get(name) for name in ("name", "code", "description")]
    if not all(isinstance(each, str) for each in found) or not isinstance(example, str | None):
        raise SkillRefused("name, code, description and example are texts")
    name, code, description = map(str, found)
    return name, code, description, example


def _translated(
    name: str, question: Callable[[CallContext, Mapping[str, Any]], Awaitable[Answer]]
) -> Callable[[CallContext, Mapping[str, Any]], Awaitable[Answer]]:
    async def answer(context: CallContext, given: Mapping[str, Any]) -> Answer:
        try:
            return await question(context, given)
        except SkillMissing as error:
            raise ToolFailed(f"{name}: {error}", "tool_unknown") from None
        except NotRecorded as error:
            raise ToolFailed(f"{name}: nothing was saved: {error}", "tool_unavailable") from None
        except (SkillRefused, ConfigError) as error:
            raise ToolFailed(f"{name}: {error}", "tool_arguments") from None

    return answer


def refuse(gateway: Gateway) -> None:
    """Have the gateway say that there are no skills, where they are turned off."""

    async def off(context: CallContext, given: Mapping[str, Any]) -> Answer:
        raise ToolFailed(
            'skills are off here: whoever runs Divingbell turns them on with skills = "on" in '
            "divingbell.toml",
            "tool_unavailable",
        )

    for name in QUESTIONS:
        gateway.register(name, off)
