"""Skills: functions that code has saved, their versions and uses."""

from typing import Annotated

from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.skills.record import Summary
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import as_json, nothing
from divingbell.surfaces.http.moments import as_text
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.wire import Given, Nothing, Page, Told


class SkillTold(Told):
    """A skill, in the version that is offered."""

    name: str
    version: int
    description: str
    state: str
    reason: str
    origin: str
    tools: list[str]
    saved_at: str
    uses: int
    failures: int
    tokens_saved: int


class SkillsTold(Told):
    """Skills of the user."""

    items: list[SkillTold]
    next: str | None


class WholeSkillTold(Told):
    """A skill with its code, and all its versions."""

    skill: SkillTold
    code: str | None
    files: list[str]
    versions: list[SkillTold]


class RollbackGiven(Given):
    """The version that is to be offered again; without a number, the one before."""

    version: Annotated[int, Meta(ge=1, lt=1 << 53)] | None = None


async def listed(call: Call, given: Page) -> ASGIApp:
    """List the skills of the user."""
    found = await call.service.bell.skills.list(user=call.visitor.user)
    part, after = pages.page(found, given, lambda each: each.name)
    return as_json(SkillsTold(items=[_told(each) for each in part], next=after))


async def get(call: Call, given: Nothing) -> ASGIApp:
    """Return a skill: its code, its files, its versions."""
    skills, name = call.service.bell.skills, call.parameter("name")
    kept = await skills.get(name, user=call.visitor.user)
    versions = await skills.versions(name, user=call.visitor.user)
    [current] = [each for each in versions if each.version == kept.version]
    return as_json(
        WholeSkillTold(
            skill=_told(current),
            code=kept.skill.code,
            files=sorted(kept.skill.files),
            versions=[_told(each) for each in versions],
        )
    )


async def rollback(call: Call, given: RollbackGiven) -> ASGIApp:
    """Offer an earlier version of a skill again."""
    skills, name = call.service.bell.skills, call.parameter("name")
    await skills.rollback(name, given.version, user=call.visitor.user)
    return await get(call, Nothing())


async def remove(call: Call, given: Nothing) -> ASGIApp:
    """Remove a skill, with all its versions."""
    await call.service.bell.skills.remove(call.parameter("name"), user=call.visitor.user)
    return nothing()


def _told(summary: Summary) -> SkillTold:
    record, usage = summary.record, summary.usage
    return SkillTold(
        name=summary.name,
        version=summary.version,
        description=summary.description,
        state=record.state,
        reason=record.reason,
        origin=record.origin,
        tools=sorted(record.tools),
        saved_at=as_text(summary.saved_at),
        uses=usage.uses,
        failures=usage.failures,
        tokens_saved=usage.tokens_saved,
    )


OPERATIONS = (
    Operation("GET", "/skills", "read", listed, query=Page, answers=SkillsTold),
    Operation("GET", "/skills/{name}", "read", get, answers=WholeSkillTold),
    Operation(
        "POST", "/skills/{name}/rollback", "run", rollback, RollbackGiven, answers=WholeSkillTold
    ),
    Operation("DELETE", "/skills/{name}", "run", remove, status=204),
)
