"""What a replica has of the shared gateway (divingbell.gateway.shared.SharedParts)."""

from divingbell.gateway.upstream.fleet import Listener
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.remote_upstream import RemoteUpstream
from divingbell.settings.servers import Server


class SharedGateway:
    """The gateway that a replica shares with others, by its link."""

    def __init__(self, link: GatewayLink) -> None:
        self._link = link

    def upstream(
        self,
        server: Server,
        on_tools: Listener,
        on_changed: Listener,
        on_state: Listener,
        session: str | None,
    ) -> RemoteUpstream:
        return RemoteUpstream(
            server,
            self._link,
            on_tools=on_tools,
            on_changed=on_changed,
            on_state=on_state,
            session=session,
        )
