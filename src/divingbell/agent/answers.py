"""Answers of a model's server over HTTP, bounded before anybody makes lines of them."""

from collections.abc import AsyncIterator

import httpx2

from divingbell.agent.model import ModelFailed

MOST_BYTES = 64 << 20
"""Bytes of one answer. A reply of 128,000 tokens, each in an event of its own, takes half of it."""
PLAIN = "identity"


def client(silence: float) -> httpx2.AsyncClient:
    """Return a client whose answers have an end, and are no more than what was sent.

    A line or an error page without an end would be kept whole by the layers above, and a compressed
    one is a thousand times as large as it is told.
    """
    return httpx2.AsyncClient(
        timeout=silence, headers={"Accept-Encoding": PLAIN}, event_hooks={"response": [_bound]}
    )


async def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    encoding = response.headers.get("Content-Encoding", PLAIN)
    response.stream = _Bounded(response.stream, encoding)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer. What is wrong with them is raised where they are read: what is raised
    before that, the layers above take for a broken connection, and ask again."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding.strip().lower() not in (PLAIN, ""):
            raise ModelFailed("the model's server compresses its answers unasked", "reply")
        left = MOST_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                words = f"the answer of the model's server has more than {MOST_BYTES >> 20} MB"
                raise ModelFailed(f"{words} and was cut off", "reply")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
