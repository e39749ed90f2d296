"""Labels of conversations as they go over the line."""

from collections.abc import Iterable
from typing import Any

from divingbell.gateway.context import Holder
from divingbell.gateway.policy.labels import Labelled, Source
from divingbell.principal import Principal
from divingbell.scale import forms
from divingbell.scale.line import Message
from divingbell_inside import frames


def written(told: Iterable[Labelled]) -> tuple[frames.Header, bytes]:
    """Return what the header says of labels, and the body."""
    form = [
        [
            each.user,
            [_form_of(holder) for holder in each.holders],
            [[source.tool, source.cell] for source in each.sources],
        ]
        for each in told
    ]
    sizes, body = forms.written(form)
    return dict(sizes), body


def read(message: Message) -> list[Labelled]:
    """Return the labels in a message.

    Raises:
        FrameError: it has none.
    """
    form, _ = forms.parsed(message.header, message.body)
    try:
        return [
            Labelled(
                _text(user),
                tuple(_holder_in(each) for each in holders),
                tuple(_source_in(*each) for each in sources),
            )
            for user, holders, sources in form
        ]
    except (TypeError, ValueError) as error:
        raise frames.FrameError(f"labels that make no sense: {error}") from None


def _form_of(holder: Holder) -> str | list[str]:
    if isinstance(holder, str):
        return holder
    return [holder.user, holder.conversation, holder.client]


def _holder_in(form: Any) -> Holder:
    if type(form) is str:
        return form
    user, conversation, client = form
    return Principal(_text(user), _text(conversation), _text(client))


def _source_in(tool: Any, cell: Any) -> Source:
    if type(cell) is not int:
        raise ValueError("a cell without a number")
    return Source(_text(tool), cell)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("a text was expected")
    return value
