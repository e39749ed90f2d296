"""Sign-ins at remote servers: tokens stay in files of the host, and are refreshed there."""

import asyncio
import contextlib
import hashlib
import json
import os
import time
import webbrowser
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, BaseModel, ValidationError

from divingbell.errors import ToolFailed
from divingbell.gateway.sign_in.issuer import (
    GuardedProvider,
    SignIn,
    check_address,
    check_endpoints,
)
from divingbell.gateway.sign_in.loopback import Loopback
from divingbell.gateway.upstream.failures import SignInNeeded, readable, root, why
from divingbell.gateway.upstream.redaction import Redactor, guard_logs
from divingbell.gateway.upstream.transport.remote import RemoteConnection
from divingbell.host import places, private_file
from divingbell.journal.events import SignedIn, SignInFailed
from divingbell.journal.journal import Journal
from divingbell.principal import Principal
from divingbell.settings.servers import OAuth, Server, secrets_of

SIGN_IN_TIMEOUT = 300.0
MAX_FILE = 1 << 20
NOBODY = Principal()

Model = TypeVar("Model", bound=BaseModel)


class Credentials:
    """The folder of tokens, a file for each server and address. No sandbox ever sees it."""

    def __init__(
        self, folder: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        if folder is None:
            folder = places.data_folder(environment) / "oauth"
        self.folder = folder
        self._seen: dict[str, float] = {}

    def path(self, server: Server) -> Path:
        """Return the file of a server's tokens: a token is never sent to another address."""
        digest = hashlib.sha256(server.address.encode()).hexdigest()[:16]
        return self.folder / f"{server.name}-{digest}.json"

    def auth(self, server: Server, redactor: Redactor) -> httpx2.Auth:
        """Return what puts the tokens on requests for the SDK. Nobody is asked to sign in."""
        self._seen[server.name] = self._time(server)
        return _Unattended(server, TokenStore(self.path(server), server, redactor))

    def changed(self, server: Server) -> bool:
        """Whether somebody has signed in since the tokens were last looked at."""
        return self._time(server) != self._seen.get(server.name, 0.0)

    def forget(self, server: Server) -> bool:
        """Throw the tokens of a server away; return whether there were any."""
        path = self.path(server)
        there = path.exists()
        path.unlink(missing_ok=True)
        return there

    def _time(self, server: Server) -> float:
        try:
            return self.path(server).stat().st_mtime
        except OSError:
            return 0.0


class TokenStore:
    """The tokens of one server, in a file; what the SDK calls a TokenStorage."""

    def __init__(self, path: Path, server: Server, redactor: Redactor) -> None:
        self._path = path
        self._server = server
        self._redactor = redactor
        self._values = self._read()
        self._provider: OAuthClientProvider | None = None
        for part, name in (
            ("tokens", "access_token"), ("tokens", "refresh_token"), ("client", "client_secret")
        ):  # fmt: skip
            value = self._values.get(part)
            if isinstance(value, dict) and isinstance(value.get(name), str):
                redactor.learn(value[name])

    @property
    def has_tokens(self) -> bool:
        return self._parsed("tokens", OAuthToken) is not None

    @property
    def _expiry(self) -> float | None:
        value = self._values.get("expires_at")
        return float(value) if isinstance(value, int | float) else None

    def serve(self, provider: OAuthClientProvider) -> None:
        """Give a provider what it does not keep itself: without it, it can't refresh a token."""
        self._provider = provider
        context = provider.context
        context.token_expiry_time = self._expiry
        context.oauth_metadata = self._parsed("metadata", OAuthMetadata)
        context.protected_resource_metadata = self._parsed("resource", ProtectedResourceMetadata)
        if context.oauth_metadata is not None and context.auth_server_url is None:
            context.auth_server_url = str(context.oauth_metadata.issuer)

    def drop_client(self) -> None:
        """Forget the registration: the next sign-in makes a new one."""
        if self._values.pop("client", None) is not None:
            self._write()

    async def get_tokens(self) -> OAuthToken | None:
        self._values = self._read()  # another process may have refreshed them
        tokens = self._parsed("tokens", OAuthToken)
        if tokens is not None:
            self._redactor.learn(tokens.access_token, tokens.refresh_token)
        if self._provider is not None:
            self._provider.context.token_expiry_time = self._expiry
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._redactor.learn(tokens.access_token, tokens.refresh_token)
        self._values["tokens"] = _dumped(tokens)
        self._values["expires_at"] = (
            None if tokens.expires_in is None else time.time() + tokens.expires_in
        )
        if self._provider is not None:
            context = self._provider.context
            self._values["metadata"] = _dumped(context.oauth_metadata)
            self._values["resource"] = _dumped(context.protected_resource_metadata)
        self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        settings = self._server.oauth or OAuth()
        if settings.client_id is not None:
            return OAuthClientInformationFull(
                client_id=settings.client_id,
                client_secret=settings.client_secret,
                token_endpoint_auth_method=_method(settings),
                issuer=settings.issuer,
            )
        return self._parsed("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._redactor.learn(client_info.client_secret)
        self._values["client"] = _dumped(client_info)
        self._write()

    def _parsed(self, part: str, model: type[Model]) -> Model | None:
        if self._values.get(part) is None:
            return None
        try:
            return model.model_validate(self._values[part])
        except ValidationError:
            return None

    def _read(self) -> dict[str, Any]:
        # Tokens are for the server and the issuer that they were asked for, whatever the entry
        # of that name says today.
        wanted = {"server": self._server.address, "issuer": (self._server.oauth or OAuth()).issuer}
        data = private_file.read(self._path, MAX_FILE)
        try:
            values = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            return wanted
        if not isinstance(values, dict) or any(values.get(key) != wanted[key] for key in wanted):
            return wanted
        return values

    def _write(self) -> None:
        private_file.write(self._path, json.dumps(self._values).encode())


class _Unattended(OAuthClientProvider):
    """A provider that uses and refreshes tokens, where nobody is there who could be asked.

    A token is refreshed where the sign-in has got it. Whatever a server says about other places
    is not followed: nothing is looked up, nothing is registered, no redirect is taken.
    """

    def __init__(self, server: Server, store: TokenStore) -> None:
        super().__init__(server.url or "", _metadata(server, "http://127.0.0.1/callback"), store)
        self._server = server
        self._store = store
        store.serve(self)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self._store.has_tokens:
            if (yield request).status_code == 401:
                raise self._sign_in_needed("first")
            return
        token = await self._token()
        if token is not None:
            # Without the lock, which would make all calls wait for each other's answers.
            response = yield _bearing(request, token)
            if response.status_code != 401:
                return
        async with self.context.lock:
            self.context.current_tokens = None  # another call or process may have refreshed it
            fresh = await self._token()
            if fresh is None or fresh == token:
                fresh = await self._refreshed((yield await self._refreshing()))
        if (yield _bearing(request, fresh)).status_code == 401:
            raise self._sign_in_needed("again")

    async def _token(self) -> str | None:
        """Return the token in force, unless its time is over."""
        context = self.context
        if context.current_tokens is None:
            context.current_tokens = await self._store.get_tokens()
            context.client_info = await self._store.get_client_info()
        tokens = context.current_tokens
        return tokens.access_token if tokens is not None and context.is_token_valid() else None

    async def _refreshing(self) -> httpx2.Request:
        """Return the request for a new token, to the place that gave the last one."""
        if not self.context.can_refresh_token():
            raise self._sign_in_needed("again")
        check_endpoints(self.context.oauth_metadata, self._server)
        self.context.protocol_version = LATEST_PROTOCOL_VERSION  # it names the resource (RFC 8707)
        request = await self._refresh_token()
        check_address(str(request.url), self._server)
        return request

    async def _refreshed(self, response: httpx2.Response) -> str:
        await response.aread()
        fits = len(response.content) <= MAX_FILE
        if not fits or not await self._handle_refresh_response(response):
            raise self._sign_in_needed("again")
        assert self.context.current_tokens is not None
        return self.context.current_tokens.access_token

    def _sign_in_needed(self, when: str) -> SignInNeeded:
        self.context.clear_tokens()  # the next call looks whether somebody has signed in
        return SignInNeeded(f"sign in {when}: run `divingbell login {self._server.name}`")


def _bearing(request: httpx2.Request, token: str) -> httpx2.Request:
    request.headers["Authorization"] = f"Bearer {token}"
    return request


async def login(
    server: Server,
    tell: Callable[[SignIn], None],
    *,
    principal: Principal = NOBODY,
    credentials: Credentials | None = None,
    open_browser: bool = True,
    timeout: float = SIGN_IN_TIMEOUT,
    journal: Journal | None = None,
) -> bool:
    """Sign in at a server, with a browser and a person; `tell` hears what is to be opened, first.

    The journal is told how it went, and that it was for `principal`.

    Returns:
        Whether a sign-in was needed.

    Raises:
        ToolFailed: it did not work; the message says why.
    """
    try:
        asked = await _log_in(server, tell, credentials or Credentials(), open_browser, timeout)
    except BaseException as error:  # a person who gives up, too
        if journal is not None:
            reason = str(error) if isinstance(error, ToolFailed) else type(error).__name__
            journal.note(SignInFailed(principal, server.name, reason))
        raise
    if asked and journal is not None:
        journal.note(SignedIn(principal, server.name))
    return asked


async def _log_in(
    server: Server,
    tell: Callable[[SignIn], None],
    credentials: Credentials,
    open_browser: bool,
    timeout: float,
) -> bool:
    guard_logs()
    if server.url is None or server.oauth is None:
        raise ToolFailed(
            f"{server.name} has no sign-in: it runs on this machine, has a token in its headers, "
            "or its entry turns `oauth` off",
            "tool_unavailable",
        )
    redactor = Redactor(secrets_of(server), server.name)
    store = TokenStore(credentials.path(server), server, redactor)
    known = await store.get_client_info()
    async with Loopback.open(server.oauth.port or _port_of(known)) as loopback:
        if server.oauth.client_id is None and loopback.address not in _addresses_of(known):
            store.drop_client()
        asked = False

        async def ask(sign_in: SignIn) -> None:
            nonlocal asked
            asked = True
            # The last one: ours stands behind whatever the server's own address says.
            loopback.expect(parse_qs(urlsplit(sign_in.url).query).get("state", [""])[-1])
            tell(sign_in)
            if open_browser:
                await asyncio.to_thread(webbrowser.open, sign_in.url)

        metadata = _metadata(server, loopback.address)
        provider = GuardedProvider(server, metadata, store, ask, loopback.answer)
        store.serve(provider)
        connection = RemoteConnection(server, provider)
        try:
            async with asyncio.timeout(timeout):
                async with Client(connection.open(asyncio.Event()), cache=None):
                    pass
        except TimeoutError:
            words = (
                f"nobody signed in at {server.name} within {timeout:g} seconds; "
                f"run `divingbell login {server.name}` again"
            )
            raise ToolFailed(words, "tool_unavailable") from None
        except Exception as error:
            cause = root(error)
            if isinstance(cause, OAuthFlowError):
                reason = readable(str(cause), redactor)
            else:
                reason = (await why(error, connection, server, False, redactor)).words
            words = f"signing in at {server.name} failed: {reason}"
            raise ToolFailed(words, "tool_unavailable") from None
        return asked


def _metadata(server: Server, address: str) -> OAuthClientMetadata:
    settings = server.oauth or OAuth()
    return OAuthClientMetadata(
        client_name="Divingbell",
        redirect_uris=[AnyUrl(address)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=_method(settings),
        scope=" ".join(settings.scopes) or None,
    )


def _method(settings: OAuth) -> Literal["client_secret_post", "none"]:
    return "client_secret_post" if settings.client_secret else "none"


def _addresses_of(client: OAuthClientInformationFull | None) -> list[str]:
    return [str(uri) for uri in (client.redirect_uris or [])] if client is not None else []


def _port_of(client: OAuthClientInformationFull | None) -> int:
    # Many servers compare the whole address: the port of the registration has to be used again.
    for address in _addresses_of(client):
        with contextlib.suppress(ValueError):
            return urlsplit(address).port or 0
    return 0


def _dumped(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
