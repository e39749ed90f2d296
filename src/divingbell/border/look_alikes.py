"""Look-alikes: text of servers and files that only looks like a token of a conversation.

A server that writes `[EMAIL_482715]` hopes that a model copies it into a call, where the value that
it stands for would be put in. Tokens that were given out stay; all others are defused.
"""

from collections.abc import Container
from typing import Any

from divingbell.border.vault import tokens


def tokens_in(value: Any) -> set[str]:
    """Return the tokens in all texts of a value of JSON, and what looks like one."""
    found: set[str] = set()
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found |= tokens.in_text(item)
        elif isinstance(item, dict):
            left += item
            left += item.values()
        elif isinstance(item, list | tuple):
            left += item
    return found


def defuse(value: Any, given: Container[str] = ()) -> Any:
    """Return a value of JSON without look-alikes; `given` are tokens of this conversation.

    A value without any is returned as it is. Nothing is nested too deeply for it.
    """
    alike = {token for token in tokens_in(value) if token not in given}
    return _without(value, alike) if alike else value


def _without(value: Any, alike: set[str]) -> Any:
    def plain(token: str) -> str:
        return tokens.defused(token) if token in alike else token

    def emptied(item: Any) -> Any:
        """The same text, number or list; members of lists and dicts are added later."""
        if isinstance(item, str):
            return tokens.replaced(item, plain)
        if isinstance(item, dict | list | tuple):
            made: Any = {} if isinstance(item, dict) else []
            left.append((item, made))
            return made
        return item

    left: list[tuple[Any, Any]] = []
    changed = emptied(value)
    while left:
        item, made = left.pop()
        if isinstance(item, dict):
            # Two names may become one: whoever writes look-alikes loses one of them.
            made.update((emptied(name), emptied(each)) for name, each in item.items())
        else:
            made.extend(map(emptied, item))
    return changed
