"""Each row about rules, approvals and users is broken where what keeps it is taken away."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.gateway import pipeline
from divingbell.gateway.catalog import folder
from divingbell.gateway.policy import approvals, labels, preview
from divingbell.gateway.policy.labels import Labels, Source
from divingbell.promises.check import admission
from divingbell.promises.check.self_check import check
from divingbell.settings import argument_names, rules
from divingbell.settings.policy import Policy
from divingbell.surfaces.mcp.passthrough.addresses import Addresses


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0) as bell:
        yield bell


Undo = Callable[[pytest.MonkeyPatch], None]


def without_counting(patch: pytest.MonkeyPatch) -> None:
    async def count(*_: Any) -> None:
        """Nothing is counted."""

    patch.setattr(pipeline.Pipeline, "budget", count)


def without_sharing(patch: pytest.MonkeyPatch) -> None:
    def cut(values: Any, room: int, _: int) -> list[str]:
        text = "\n".join(preview._written(value) for value in values)[:room]
        return (text.split("\n") + [""] * len(values))[: len(values)]

    patch.setattr(preview, "_shared", cut)


def without_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(approvals._Given, "holds", lambda self, kind, _: kind in {k for _, k in self.run})


def without_folding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(argument_names, "plain", lambda name: name)
    patch.setattr(argument_names, "head", lambda name: name)


def without_texts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "_read", lambda _: [])


def without_caution(patch: pytest.MonkeyPatch) -> None:
    values, missing = rules.Condition._values, rules._MISSING

    def forgetful(self: rules.Condition, arguments: Any) -> Any:
        return (missing if each is rules._CLOSED else each for each in values(self, arguments))

    patch.setattr(rules.Condition, "_values", forgetful)


def without_places(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Addresses, "given", lambda _, __, uri: uri)
    patch.setattr(Addresses, "taken", lambda self, uri: (next(iter(self._servers)), uri))


def without_lines_of_their_own(patch: pytest.MonkeyPatch) -> None:
    ask = approvals.Approvals._queue

    async def as_one(self: Any, approval: Any, *told: Any) -> Any:
        return await ask(self, replace(approval, key="everybody", run=0), *told)

    patch.setattr(approvals.Approvals, "_queue", as_one)
    patch.setattr(admission, "_PATIENCE", 3.0)


def without_users(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "audience", lambda *_: "everyone")


def without_a_list_of_names(patch: pytest.MonkeyPatch) -> None:
    source = folder.package_source
    patch.setattr(folder, "package_source", lambda *told: f"{source(*told)}__all__ = _tools\n")


def without_labels(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Labels, "add", lambda *_: None)


def without_labels_in_time(patch: pytest.MonkeyPatch) -> None:
    add, send = Labels.add, pipeline.Pipeline.send

    async def and_label(self: pipeline.Pipeline, request: pipeline.Request) -> None:
        await send(self, request)
        context = request.context
        add(self.labels, context.holder, context.user, Source(request.tool.full_name))

    patch.setattr(Labels, "add", lambda *_: None)
    patch.setattr(pipeline.Pipeline, "send", and_label)


def without_joining(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Labels, "join", lambda *_: None)


def with_one_conversation_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(labels, "MAX_HOLDERS", 0)


@pytest.mark.parametrize(
    ("undo", "rows"),
    [
        (without_counting, {"T60"}),
        (without_sharing, {"T61"}),
        (without_runs, {"T62"}),
        (without_folding, {"T63", "T64"}),
        (without_texts, {"T64"}),
        (without_caution, {"T64"}),
        (without_places, {"T65"}),
        (without_lines_of_their_own, {"T66"}),
        (without_labels, {"T67", "T68"}),
        (without_labels_in_time, {"T67"}),
        (without_joining, {"T68"}),
        (with_one_conversation_for_all, {"T68"}),
        (without_users, {"D60"}),
        (without_a_list_of_names, {"D61"}),
    ],
)
async def test_a_row_is_broken_without_what_keeps_it(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch, undo: Undo, rows: set[str]
) -> None:
    undo(monkeypatch)
    verdicts = [verdict async for verdict in check(own_bell, rows)]
    assert {verdict.promise.id for verdict in verdicts if not verdict.kept} == rows
