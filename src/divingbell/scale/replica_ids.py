"""The name of a replica in the ids of connections, so that requests find back to it.

A connection of the older protocol lives in the replica that has opened it, and its id is that
replica's own invention. So on its way out the replica's name is put in front of it, and taken off
again on its way in.
"""

import pickletools

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = b"mcp-session-id"


def replica_of(connection: str) -> str:
    """Return the replica that the id of a connection names; empty for none."""
    return connection.partition(".")[0] if "." in connection else ""


def header_in(request: bytes, name: bytes) -> str:
    """Return a header of a request that Serve's proxy has pickled; empty where it has none.

    The pickle is read as a list of values, and nothing of it is brought to life: clients have
    written most of what is in it. What they could put before the header leads astray their own
    request alone.
    """
    values = (value for _, value, _ in pickletools.genops(request) if isinstance(value, bytes))
    for value in values:
        if value.lower() == name:
            return next(values, b"").decode("latin-1")
    return ""


class ReplicaIds:
    """An application whose connections have the name of its replica in their ids."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        self._prefix = f"{name}.".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (key, self._prefix + value if key.lower() == HEADER else value)
                    for key, value in message.get("headers", ())
                ]
                message = {**message, "headers": headers}
            await send(message)

        # The id of another replica stays as it is: nobody knows it here, and the client is told.
        headers = [
            (key, value.removeprefix(self._prefix) if key.lower() == HEADER else value)
            for key, value in scope["headers"]
        ]
        await self._app({**scope, "headers": headers}, receive, named)
