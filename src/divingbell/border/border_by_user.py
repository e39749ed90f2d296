"""A border by user: some users have a stricter one than the others."""

from collections.abc import Callable, Mapping

from divingbell.border.border import (
    Border,
    Charge,
    Passage,
    Reader,
    Reading,
    Restored,
    Value,
)
from divingbell.border.masked_values import MaskedValues
from divingbell.principal import Principal


class BorderByUser:
    """Passes everything on to the border that `choose` has for the user whose it is.

    A user must always have the same one, because it knows their conversations. All count what they
    hide in `masked`.
    """

    def __init__(self, choose: Callable[[str], Border], masked: MaskedValues) -> None:
        self._choose = choose
        self.masked = masked

    def _of(self, principal: Principal) -> Border:
        return self._choose(principal.user)

    async def inward(
        self, value: Value, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Value:
        return await self._of(principal).inward(value, principal, to, written)

    async def restored(
        self, value: object, principal: Principal, written: bytes | None = None
    ) -> tuple[Restored, ...]:
        return await self._of(principal).restored(value, principal, written)

    async def values_in(self, code: str, principal: Principal) -> Mapping[str, str]:
        return await self._of(principal).values_in(code, principal)

    async def reveal(self, text: str, principal: Principal) -> tuple[str, int]:
        return await self._of(principal).reveal(text, principal)

    async def outward(
        self, value: Value, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Value:
        return await self._of(principal).outward(value, principal, reader, origin)

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        return self._of(principal).text(text, principal, goes_on=goes_on)

    def passage(self, principal: Principal, charge: Charge) -> Passage:
        return self._of(principal).passage(principal, charge)

    def note(self, principal: Principal) -> str:
        return self._of(principal).note(principal)

    def join(self, client: Principal, session: Principal) -> None:
        self._of(session).join(client, session)

    def hold(self, principal: Principal) -> Callable[[], None]:
        return self._of(principal).hold(principal)

    async def learn(self, given: object, principal: Principal, tool: str) -> None:
        await self._of(principal).learn(given, principal, tool)

    def reading(self, name: str, principal: Principal) -> Reading:
        return self._of(principal).reading(name, principal)

    def learns(self, principal: Principal) -> bool:
        return self._of(principal).learns(principal)

    async def learn_told(self, told: bytes, principal: Principal, charge: Charge) -> None:
        await self._of(principal).learn_told(told, principal, charge)

    def holds_back(self, principal: Principal, content: bytes = b"") -> bool:
        return self._of(principal).holds_back(principal, content)
