"""The exits: whatever goes to a client passes here, and over the border.

Names, descriptions, questions and errors are read by a model or a person. Characters that nobody
sees can carry orders to the one and deceive the other, so they are written out; what acts on a
terminal is removed. The content of results and of resources is data, and stays as it is.

What code prints is its own, and stays as it is too. Its parts have passed the border in their
session; they pass again once they are joined, since a word may be whole only then. Definitions of
tools are documentation, and are not passed over the border.
"""

import functools
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import mcp_types as types
from mcp import MCPError
from pydantic import BaseModel, ValidationError

from divingbell import logs
from divingbell.border import binary
from divingbell.border.border import Border, OpenBorder
from divingbell.border.walk import Leaves
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.surfaces.mcp.callers import Context, principal_of
from divingbell.surfaces.mcp.definitions import NAME, NAMES, SEARCH
from divingbell.text import everywhere, is_cut, texts_in, visible

log = logs.logger("divingbell")

MAX_TEXT = 64_000
MAX_MESSAGE = 4_000
LONG = 8_000
"""Characters; where there are more, they are made visible beside the event loop. Measured: a hidden
one takes 2 µs, a hundred times as long as others."""
READ = "resources/read"
APPROVAL = f"{NAME}-approval-{secrets.token_hex(8)}"
"""The names of our own questions begin with this: no server can guess it."""
INTERNAL = "internal error: the log of divingbell says more"
DOCUMENTATION = ("initialize", "server/discover", "tools/list")
SKILLS = ("skills/list", "skills/get")
"""What they tell has passed the border already: it is made of files as `content` returns them, and
of their addresses as `address` does. A digest that passed again might be taken for a secret."""

_META = "_meta"
_BRACKETED = re.compile(r"((?:\[|%5[Bb])[A-Z0-9_]{1,64}(?:\]|%5[Dd]))")
Model = TypeVar("Model", bound=BaseModel)


def _made_visible(said: Any) -> Any:
    return everywhere(said, MAX_TEXT)


def _dumped(model: BaseModel) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)


def _is_cut(seen: Any) -> bool:
    return any(map(is_cut, texts_in(seen)))


def _taken_apart(value: Any, seen: Callable[[Any], Any]) -> tuple[Any, Any, bool]:
    """JSON with bytes for base64, the same as it is seen, and whether some of that was cut."""
    apart = binary.taken_out(value)
    visibly = seen(apart)
    # What is the same was not cut: told in a tenth of the time that a look at each text takes.
    return apart, visibly, visibly != apart and _is_cut(visibly)


def _is_short_text(value: Any) -> bool:
    """Whether JSON is short, and has nothing in it but what can be read. Most answers are so."""
    leaves = Leaves.of_small(value, weight.LARGE_COUNT, LONG)
    return leaves is not None and not binary.may_be_among(leaves.texts)


async def _at_once(work: Callable[[], Any]) -> Any:
    return work()


class Exits:
    """The way out to the clients of one surface, and the way in for what their models write."""

    def __init__(self, border: Border | None = None) -> None:
        self._border = border or OpenBorder()

    async def answer(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """Pass each answer and each error on its way out (a middleware).

        Raises:
            MCPError: the request failed. What else is raised may name anything of the host, and
                the SDK would send its words: they are for the log.
        """
        try:
            return await self._passed(ctx, call_next)
        except (MCPError, ValidationError):
            raise  # of the second kind the SDK says only that the parameters are not valid
        except Exception:
            log.exception("%s could not be answered", visible(ctx.method, MAX_MESSAGE))
            raise MCPError(types.INTERNAL_ERROR, INTERNAL) from None

    async def _passed(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        principal = principal_of(ctx)
        release = self._border.hold(principal)
        try:
            return await self._passed_for(principal, ctx, call_next)
        finally:
            release()

    async def _passed_for(
        self, principal: Principal, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]
    ) -> Any:
        try:
            answer = await call_next(ctx)
        except MCPError as error:
            said = [error.message, error.error.data]
            words, data = await self._over(said, principal)
            raise MCPError(error.code, words, data) from None
        if not isinstance(answer, Mapping):
            return answer
        name = (ctx.params or {}).get("name") if ctx.method == "tools/call" else None
        if name in NAMES and "inputRequests" not in answer:
            if name == SEARCH.name and not answer.get("isError"):
                return dict(answer)
            # Figures of our own, and names of tools: what a cell shows is not in there.
            figures = {_META: answer[_META]} if _META in answer else {}
            told = {name: part for name, part in answer.items() if name != _META}
            return await self._shown(told, principal, dict) | figures
        seen = functools.partial(result, ctx.method)
        if ctx.method in (*DOCUMENTATION, *SKILLS):
            return await weight.beside(seen, answer, text=LONG)
        asked = answer.get("inputRequests")
        if not isinstance(asked, Mapping):
            return await self._shown(answer, principal, seen)
        ours = {key: each for key, each in asked.items() if key.startswith(APPROVAL)}
        others = {key: each for key, each in asked.items() if key not in ours}
        shown = await self._shown({**answer, "inputRequests": others}, principal, seen)
        return shown | {"inputRequests": shown["inputRequests"] | everywhere(ours, MAX_TEXT)}

    async def _shown(
        self, answer: Mapping[str, Any], principal: Principal, seen: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return an answer as the model may see it, with a word on that where it is due."""
        shown: dict[str, Any] = await self._over(answer, principal, seen)
        note = self._border.note(principal)
        if note and isinstance(shown.get("content"), list):
            told = {"type": "text", "text": f"[{note}]"}
            shown = {**shown, "content": [*shown["content"], told]}
        return shown

    async def _over(
        self, value: Any, principal: Principal, seen: Callable[[Any], Any] = _made_visible
    ) -> Any:
        """Pass JSON over the border, with its words as `seen` makes them visible."""
        if self.is_open:
            return await weight.beside(seen, value, text=LONG)
        if _is_short_text(value) and (visibly := seen(value)) == value:
            return await self._border.outward(visibly, principal)
        # To ask how large a value is takes as long as most of what is done with it here.
        do = weight.in_thread if weight.is_large(value, text=LONG) else _at_once
        apart, visibly, is_cut_somewhere = await do(lambda: _taken_apart(value, seen))
        if is_cut_somewhere:
            # Where it is cut there may be half a value, which nobody would know any more.
            apart = await self._border.outward(apart, principal)
            visibly = await do(lambda: seen(apart))
        shown = await self._border.outward(visibly, principal)
        return await do(
            lambda: binary.put_back(
                shown, is_held=lambda content: self._border.holds_back(principal, content)
            )
        )

    @property
    def is_open(self) -> bool:
        """Whether the border changes nothing, for anybody."""
        return type(self._border) is OpenBorder

    async def content(self, answer: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
        """Return the answer to `resources/read` as the client will get it."""
        return dict(await self._over(answer, principal, functools.partial(result, READ)))

    async def question(self, key: str, model: Model, principal: Principal) -> Model:
        """Return a question with all its texts made visible; an approval with its real values."""
        return await self._visible(model, principal, key.startswith(APPROVAL))

    async def model(self, model: Model, principal: Principal) -> Model:
        """Return a message with all its texts made visible."""
        return await self._visible(model, principal)

    async def _visible(self, model: Model, principal: Principal, is_ours: bool = False) -> Model:
        dumped = await weight.beside(_dumped, model, text=LONG)
        if is_ours:
            shown = await weight.beside(_made_visible, dumped, text=LONG)
        else:
            shown = await self._over(dumped, principal)
        return type(model).model_validate(shown, by_name=False)

    async def words(self, words: str, principal: Principal) -> str:
        """Return a line that tells how something goes."""
        shown: str = await self._over(words, principal, lambda text: visible(text, MAX_MESSAGE))
        return shown

    async def address(self, uri: str, principal: Principal) -> str:
        """Return the address of a resource, which may hold the name of a file."""
        return await self._border.outward(uri, principal)

    async def written_address(self, uri: str, principal: Principal) -> str:
        """Return the address of a resource that the client's model wrote, as the host takes it."""
        parts = _BRACKETED.split(uri)
        for place in range(1, len(parts), 2):  # where something else may have been shown
            word = f"[{unquote(parts[place])[1:-1]}]"
            meant: str = await self._border.inward(word, principal)
            parts[place] = parts[place] if meant == word else quote(meant, safe="")
        return "".join(parts)

    async def written(self, value: Any, principal: Principal) -> Any:
        """Return what the client's model wrote, as the host takes it."""
        if isinstance(value, BaseModel):
            inward = await self._border.inward(_dumped(value), principal)
            return type(value).model_validate(inward, by_name=False)
        return await self._border.inward(value, principal)


def result(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its words made visible, and its data as it is."""
    if method not in ("tools/call", READ) or answer.get("isError"):
        return dict(everywhere(answer, MAX_TEXT))
    return {name: _part(name, part) for name, part in answer.items()}


def _part(name: str, part: Any) -> Any:
    if name == "structuredContent":
        return part
    if name in ("content", "contents") and isinstance(part, list):
        return [_block(block) for block in part]
    return everywhere(part, MAX_TEXT)


def _block(block: Any) -> Any:
    """Return a block of content: its names are made visible, what is in it stays."""
    if not isinstance(block, Mapping):
        return everywhere(block, MAX_TEXT)
    kept = {name: block[name] for name in ("text", "blob", "data") if name in block}
    if "resource" in block:
        kept["resource"] = _block(block["resource"])
    words = {name: value for name, value in block.items() if name not in kept}
    return everywhere(words, MAX_TEXT) | kept
