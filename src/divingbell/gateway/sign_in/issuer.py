"""The issuer: the authorization server of a sign-in, and the addresses that are its own.

A server says itself where to sign in. One that means harm names the page of a provider that the
person trusts, and an address of its own where the token is asked for: it would get the code, its
verifier and the client's secret (mix-up, RFC 9700 section 4.4). It can also name addresses that
only this machine can reach. So everything happens at one origin, the issuer's, over https.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import TokenStorage
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
from mcp_types import LATEST_PROTOCOL_VERSION

from divingbell import text
from divingbell.settings.addresses import host_of, is_inside, is_loopback, origin
from divingbell.settings.servers import OAuth, Server

MAX_SHOWN = 500


@dataclass(frozen=True, slots=True)
class SignIn:
    """A sign-in, shown to a person before a browser opens. All of it is what the server says."""

    url: str
    """The page to open."""
    server: str
    issuer: str
    """The authorization server."""
    token_origin: str
    """The origin that the token is asked of."""
    scopes: tuple[str, ...]

    def __str__(self) -> str:
        scopes = ", ".join(self.scopes) or "none is named"
        lines = (
            f"the server:          {self.server}",
            f"you sign in at:      {self.issuer}",
            f"the token is from:   {self.token_origin}",
            f"it asks for:         {scopes}",
            "Go on if you know the place, in a browser:",
        )
        return "\n".join([*(text.one_line(line, MAX_SHOWN) for line in lines), self.url])


class GuardedProvider(OAuthClientProvider):
    """The SDK's provider; it asks no address that is not the server's or the issuer's own."""

    def __init__(
        self,
        server: Server,
        metadata: OAuthClientMetadata,
        storage: TokenStorage,
        ask: Callable[[SignIn], Awaitable[None]],
        answer: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        async def redirect(url: str) -> None:
            await ask(self._sign_in(url))

        super().__init__(server.url or "", metadata, storage, redirect, answer)
        self._server = server
        self._settings = server.oauth or OAuth()
        self.context.auth_server_url = self._settings.issuer

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    self._check(outgoing)
                response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _check(self, outgoing: httpx2.Request) -> None:
        """Raise OAuthFlowError for a request of the SDK's that goes elsewhere.

        It may be discovery, registration, a token, or a redirect of any of these.
        """
        url, issuer = str(outgoing.url), self._expected_issuer()
        # What a server publishes about itself is read from itself. All else is the issuer's.
        is_own = outgoing.method == "GET" and origin(url) == origin(self._server.url or "")
        if not is_own and origin(url) != origin(issuer):
            raise OAuthFlowError(
                f"it names an address at {origin(url)}, which is not at its issuer {issuer}"
            )
        check_address(url, self._server)

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self._settings.issuer
        if wanted is None:
            return super()._select_authorization_server(advertised)
        for one in advertised:
            if issuers_match(one, wanted):
                return one
        raise OAuthFlowError(
            f"it wants a sign-in at {advertised[0]}, and the issuer in its entry is {wanted}"
        )

    async def _perform_authorization(self) -> httpx2.Request:
        check_endpoints(self.context.oauth_metadata, self._server)
        if self._settings.scopes:  # the SDK takes what the server asks for in their place
            self.context.client_metadata.scope = " ".join(self._settings.scopes)
        # The token is to be of use at this server alone (RFC 8707); older revisions left it out.
        self.context.protocol_version = LATEST_PROTOCOL_VERSION
        return await super()._perform_authorization()

    def _sign_in(self, url: str) -> SignIn:
        check_address(url, self._server)
        return SignIn(
            url,
            self._server.address,
            self._expected_issuer(),
            origin(self._get_token_endpoint()),
            tuple((self.context.client_metadata.scope or "").split()),
        )


def check_endpoints(metadata: OAuthMetadata | None, server: Server) -> None:
    """Check that all endpoints are at the origin of their issuer, and that it is the right one.

    Raises:
        OAuthFlowError: they are not.
    """
    wanted = None if server.oauth is None else server.oauth.issuer
    if metadata is None:
        if wanted is not None:
            raise OAuthFlowError(f"{wanted} does not say where its endpoints are")
        return  # then they are at the server's own origin
    issuer = str(metadata.issuer)
    if wanted is not None and not issuers_match(issuer, wanted):
        raise OAuthFlowError(f"the issuer is {issuer}, and that of its entry is {wanted}")
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        endpoint = getattr(metadata, name)
        if endpoint is None:
            continue
        if origin(str(endpoint)) != origin(issuer):
            raise OAuthFlowError(
                f"its {name} is at {origin(str(endpoint))}, which is not at its issuer {issuer}"
            )
        check_address(str(endpoint), server)


def check_address(url: str, server: Server) -> None:
    """Check that an address may be asked: over https, and not on this network by its number.

    A server on this machine that the settings name may have its authorization server here too.

    Raises:
        OAuthFlowError: it is not.
    """
    host = host_of(url)
    named = (server.url, None if server.oauth is None else server.oauth.issuer)
    hosts = {host_of(one) for one in named if one is not None}
    if is_loopback(host) and any(map(is_loopback, hosts)):
        return
    if url.startswith("https://") and (host in hosts or not is_inside(host)):
        return
    raise OAuthFlowError(
        f"an address at {origin(url)} is not asked: it has to be a public one, over https"
    )
