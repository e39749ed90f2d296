"""The connector of one server: makes each connection to it, to a process of ours or an address."""

from collections.abc import Mapping

from divingbell.gateway.sign_in.oauth import Credentials
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport.orphan_groups import ProcessGroups
from divingbell.gateway.upstream.transport.remote import RemoteConnection
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.gateway.upstream.transport.stdio import StdioConnection
from divingbell.settings.servers import Server

Connection = StdioConnection | RemoteConnection


class Connector:
    """Makes connections as the server's entry says, with its environment or its sign-in."""

    def __init__(
        self,
        server: Server,
        redactor: Redactor,
        server_log: ServerLog,
        environment: Mapping[str, str],
        credentials: Credentials | None,
        process_groups: ProcessGroups | None,
    ) -> None:
        self._server = server
        self._redactor = redactor
        self._log = server_log
        self._environment = environment
        self._credentials = credentials
        self._process_groups = process_groups

    def new_connection(self) -> Connection:
        """Return a connection that is not open yet."""
        if self._server.transport == "stdio":
            return StdioConnection(self._server, self._environment, self._log, self._process_groups)
        auth = None
        if self._credentials is not None and self._server.oauth is not None:
            auth = self._credentials.auth(self._server, self._redactor)
        return RemoteConnection(self._server, auth)

    def has_new_sign_in(self) -> bool:
        """Tell whether somebody has signed in since the last connection was made."""
        return self._credentials is not None and self._credentials.changed(self._server)
