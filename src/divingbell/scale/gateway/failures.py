"""Failures as the last message of a request to the shared gateway."""

from divingbell.errors import NotRecorded, ToolFailed
from divingbell.scale.door import tool_failure
from divingbell.scale.line import Message, Stream
from divingbell.session.intake import field_of

MAX_WORDS = 20_000


async def end_failed(stream: Stream, error: ToolFailed | NotRecorded) -> None:
    """End a request with a failure."""
    words = str(error)[:MAX_WORDS].encode("utf-8", "replace")
    await stream.end({"failed": error.code}, words)


def checked(message: Message) -> Message:
    """Return a message, unless it says that something failed.

    Raises:
        ToolFailed, NotRecorded: it did.
    """
    code = field_of(message.header, "failed", str)
    if code is None:
        return message
    words = message.body.decode("utf-8", "replace")
    if code == NotRecorded.code:
        raise NotRecorded(words)
    raise tool_failure(code, words)
