"""Outputs of a cell that part a value: half of it on one stream, half on the other, or a display
between the halves.

A reader sees the streams one after the other as they were written, or one of them alone: a value
must be whole in neither.
"""

import dataclasses
from collections.abc import Callable, Iterator

from divingbell.models import Output, Result

Rejoined = Callable[[list[str]], list[str]]
"""Returns texts that are read as one, without the values that lie across two of them."""
_STREAMS = ("stdout", "stderr")


def without_parted(result: Result, rejoined: Rejoined) -> Result:
    """Return a result without the values that lie across several of its outputs."""
    outputs = list(result.outputs)
    for places in filter(lambda places: len(places) > 1, _readings(result.outputs)):
        texts = [str(outputs[place].data) for place in places]
        changed = rejoined(texts)
        if changed is not texts:
            for place, text in zip(places, changed, strict=True):
                outputs[place] = dataclasses.replace(outputs[place], data=text)
    return dataclasses.replace(result, outputs=tuple(outputs))


def is_parted(result: Result) -> bool:
    """Whether there is anything to be joined."""
    return sum(map(_is_streamed, result.outputs)) > 1


def _readings(outputs: tuple[Output, ...]) -> Iterator[list[int]]:
    """The places of texts that are read as one: of each stream, and of both where nothing else is
    between them."""
    for name in _STREAMS:
        streamed = ((place, each) for place, each in enumerate(outputs) if _is_streamed(each))
        yield [place for place, each in streamed if each.name == name]
    run: list[int] = []
    for place, each in enumerate(outputs):
        if _is_streamed(each):
            run.append(place)
        else:
            yield run
            run = []
    yield run


def _is_streamed(output: Output) -> bool:
    return output.name in _STREAMS and isinstance(output.data, str)
