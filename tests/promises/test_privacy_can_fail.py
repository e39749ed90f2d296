"""Each row about personal data and secrets is broken where what keeps it is taken away."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.border import privacy_border
from divingbell.border.conversation import Conversation
from divingbell.border.pictures import Pictures
from divingbell.border.privacy import learned, overwriting, views
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.token_screen import TokenScreen
from divingbell.border.vault import tokens
from divingbell.border.vault.seal import Seal
from divingbell.border.vault.vault import Vaults
from divingbell.gateway.pipeline import Pipeline, Request
from divingbell.principal import Principal
from divingbell.session.local import LocalSession
from divingbell.settings.privacy import PrivacyRules
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


Undo = Callable[[pytest.MonkeyPatch], None]


def without_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "tokenised_all", lambda self, texts, *_, **__: texts)


def without_the_border_of_the_sandbox(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PrivacyRules, "borders_in", lambda *_: ())


def without_holding_back(patch: pytest.MonkeyPatch) -> None:
    def at_once(self: PieceScreen, piece: str) -> str:
        return self._replaced(piece, self._screen.finds(piece), len(piece))

    patch.setattr(PieceScreen, "feed", at_once)


def without_a_look_behind_disguises(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(views, "finds_without_disguise", lambda *_: iter(()))


def without_a_look_at_what_is_overwritten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(overwriting, "occurs", lambda _: False)


def without_a_look_at_what_was_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(learned, "_finds_at_end", lambda *_: iter(()))


def without_defusing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tokens, "defused", lambda token: token)


def without_defusing_in_pieces(patch: pytest.MonkeyPatch) -> None:
    def pieces(self: Conversation) -> PieceScreen:
        def shown(piece: str, kind: str) -> str:
            return piece if not kind else self._shown(piece, kind, "", False)

        return PieceScreen(self.screen, shown)

    patch.setattr(Conversation, "pieces", pieces)


def with_one_vault_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seal, "name_of", lambda *_: "everybody")


def with_tokens_that_nobody_knows(patch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any) -> dict[str, Any]:
        return {}

    patch.setattr(Vaults, "entries", none)


def with_values_in_the_text_of_code(patch: pytest.MonkeyPatch) -> None:
    run = LocalSession._run

    async def textual(self: LocalSession, code: Any, *rest: Any) -> Any:
        if isinstance(code, str):
            values = await self._services.border.values_in(code, self.principal)
            code = tokens.replaced(code, lambda token: values.get(token, token))
        return await run(self, code, *rest)

    patch.setattr(LocalSession, "_run", textual)


def with_secrets_like_any_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(privacy_border, "SECRETS", frozenset())


def with_values_put_back_late(patch: pytest.MonkeyPatch) -> None:
    restore, intend = Pipeline.restore, Pipeline.intend

    async def nothing(*_: Any) -> None:
        """Leave tokens in their places for now."""

    async def late(self: Pipeline, request: Request) -> None:
        await restore(self, request)
        request.arguments = request.given
        await intend(self, request)

    patch.setattr(Pipeline, "restore", nothing)
    patch.setattr(Pipeline, "intend", late)


def with_pictures(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(privacy_border, "_without_binary", lambda value, *_: value)


def with_charts_whatever_they_say(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pictures, "problem_of", lambda *_: "")


def without_a_look_across_outputs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(privacy_border, "is_parted", lambda _: False)


def with_binary_content_for_clients(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PrivacyBorder, "holds_back", lambda *_: False)


def without_a_seal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Seal, "close", lambda _, value, __: json.dumps(value).encode())
    patch.setattr(Seal, "open", lambda _, sealed, __: json.loads(sealed))


def with_values_in_the_log(patch: pytest.MonkeyPatch) -> None:
    reveal = PrivacyBorder.reveal

    async def talkative(self: PrivacyBorder, text: str, principal: Principal) -> Any:
        shown = await reveal(self, text, principal)
        logging.getLogger("divingbell.border").debug("%s was asked for", shown)
        return shown

    patch.setattr(PrivacyBorder, "reveal", talkative)


def with_work_on_the_event_loop(patch: pytest.MonkeyPatch) -> None:
    async def here(
        work: Callable[[Any], Any], value: Any, charge: object = None, *, apart: bool = False
    ) -> Any:
        return work(value)

    async def with_leaves_here(
        work: Callable[[Any], Any], value: Any, *, apart: bool = False
    ) -> Any:
        return work(privacy_border.Leaves(value))

    patch.setattr(privacy_border, "_beside", here)
    patch.setattr(privacy_border, "_with_leaves", with_leaves_here)


def with_work_that_grows_too_fast(patch: pytest.MonkeyPatch) -> None:
    with_tokens = TokenScreen.with_tokens

    def slowly(self: TokenScreen, text: str, found: Any) -> Any:
        sum(abs(number) for number in range(len(text) ** 2 // 50))
        return with_tokens(self, text, found)

    patch.setattr(TokenScreen, "with_tokens", slowly)


def with_one_memory_for_all(patch: pytest.MonkeyPatch) -> None:
    of = PrivacyBorder._of
    patch.setattr(PrivacyBorder, "_of", lambda self, _: of(self, Principal("all", "one", "http")))


@pytest.mark.parametrize(
    ("undo", "rows"),
    [
        (without_tokens, {"I01", "I02", "I05", "I06", "I16", "I18", "I19"}),
        (without_the_border_of_the_sandbox, {"I02", "I05"}),
        (without_holding_back, {"I10"}),
        (without_a_look_behind_disguises, {"I11"}),
        (without_a_look_at_what_is_overwritten, {"I11"}),
        (without_a_look_at_what_was_cut, {"I11"}),
        (without_defusing, {"I12"}),
        (without_defusing_in_pieces, {"I12"}),
        (with_one_vault_for_all, {"I13"}),
        (with_tokens_that_nobody_knows, {"I13"}),
        (with_values_in_the_text_of_code, {"I14"}),
        (with_secrets_like_any_value, {"I15"}),
        (with_values_put_back_late, {"I17", "I18"}),
        (with_pictures, {"I19"}),
        (with_binary_content_for_clients, {"I19"}),
        (with_charts_whatever_they_say, {"I19"}),
        (without_a_look_across_outputs, {"I10"}),
        (without_a_seal, {"I20"}),
        (with_values_in_the_log, {"I20"}),
        (with_work_on_the_event_loop, {"I21"}),
        (with_work_that_grows_too_fast, {"I21"}),
        (with_one_memory_for_all, {"I22"}),
    ],
)
async def test_a_row_is_broken_without_what_keeps_it(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch, undo: Undo, rows: set[str]
) -> None:
    undo(monkeypatch)
    assert await broken(own_bell, rows) == rows
