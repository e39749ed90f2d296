"""A server behind OAuth, with an authorization server of its own that lets everybody in.

arguments: port, seconds that an access token lasts
"""

import asyncio
import secrets
import sys
import time
import warnings

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PORT = int(sys.argv[1])
LASTS = int(sys.argv[2]) if len(sys.argv) > 2 else 3600
ROOT = f"http://127.0.0.1:{PORT}"


class Desk(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}
        self.count = {"registered": 0, "refreshed": 0}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.count["registered"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = f"code-{secrets.token_urlsafe(24)}"
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    def _issue(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=int(time.time()) + LASTS
        )
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=LASTS, scope=" ".join(scopes)
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.count["refreshed"] += 1
        del self.refreshes[refresh_token.token]
        return self._issue(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        pass


desk = Desk()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    settings = AuthSettings(
        issuer_url=ROOT,
        resource_server_url=f"{ROOT}/mcp",
        required_scopes=["use"],
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use"], default_scopes=["use"]
        ),
    )
    server = MCPServer("guarded", auth_server_provider=desk, auth=settings)


@server.tool()
def counts() -> dict[str, int]:
    return desk.count


@server.tool()
def reveal() -> list[str]:
    """Say the tokens aloud."""
    return [*desk.tokens, *desk.refreshes]


@server.tool()
def revoke(refreshes: bool = False) -> str:
    """Make all access tokens void, and the refresh tokens too if asked."""
    desk.tokens.clear()
    if refreshes:
        desk.refreshes.clear()
    return "void"


_arrived: list[None] = []
_both = asyncio.Event()


@server.tool()
async def meet() -> str:
    """Wait for another call of this tool."""
    _arrived.append(None)
    if len(_arrived) == 2:
        _both.set()
    await _both.wait()
    return "met"


server.run("streamable-http", host="127.0.0.1", port=PORT, json_response=True)
