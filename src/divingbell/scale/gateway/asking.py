"""Asks the shared gateway something short on the way of a call."""

from divingbell.errors import DivingbellError
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.line import Message
from divingbell_inside import frames

WHAT = "this call"


async def asked(link: GatewayLink, header: frames.Header, body: bytes = b"") -> Message:
    """Return the answer of the gateway.

    Raises:
        ToolFailed: it is away, or can't say.
    """
    line = await link.line(WHAT)
    try:
        return await line.request(header, body).receive()
    except DivingbellError as error:
        raise link.away(WHAT) from error
