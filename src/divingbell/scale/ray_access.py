"""Access to a Ray cluster: the token that it asks for, its certificates, the connection.

Whoever may call a Ray cluster may run any code on it. So it is looked at whether it asks for a
token before anything is sent there.
"""

import os
import socket
from pathlib import Path

import grpc
import ray
from ray._private import services
from ray._raylet import Config
from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

from divingbell.errors import ConfigError, SandboxUnavailable
from divingbell.scale import certificates

REACH_TIMEOUT = 5.0
"""Seconds for the head to answer. Ray itself tries for 20 to 45, and then says that it failed."""
_HEAD = "start it with `ray start --head` (see docs/scale.md), or set ray_address"


def connect(address: str, *, insecure: bool) -> None:
    """Connect this process to a Ray cluster, unless it is connected. Blocks.

    Raises:
        ConfigError: the cluster lets anybody in, or does not take our token.
        SandboxUnavailable: there is none at that address.
    """
    if not insecure and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        raise ConfigError(
            "RAY_AUTH_MODE is not `token`: whoever reaches such a Ray cluster runs any code on it. "
            "Set RAY_AUTH_MODE=token on all machines (`ray get-auth-token --generate` makes the "
            "token), and start Ray again; or set ray_insecure = true if nobody else can reach it"
        )
    if ray.is_initialized():
        check(ray.get_runtime_context().gcs_address, insecure=insecure)
        return
    if "://" in address:
        raise ConfigError(
            f"ray_address = {address!r} is one of Ray Client, which keeps no connection to nodes: "
            "give the address of the head, as in 10.0.0.1:6379"
        )
    try:
        head = services.canonicalize_bootstrap_address_or_die(address)
    except (ConnectionError, ValueError) as error:
        raise SandboxUnavailable(f"there is no Ray cluster ({error}): {_HEAD}") from None
    check(head, insecure=insecure)
    Config.initialize("")  # else Ray goes by the environment as it was when it was loaded
    try:
        ray.init(address=head, namespace="divingbell", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError) as error:
        raise SandboxUnavailable(f"the Ray cluster at {head} can't be used: {error}") from None


def check(head: str, *, insecure: bool) -> None:
    """Ask the head for an answer, without a token and with ours.

    Raises:
        ConfigError: it answers to anybody, or not to us.
        SandboxUnavailable: it does not answer.
    """
    host, _, port = head.rpartition(":")
    try:
        # Ray's own client takes three quarters of a minute to say that nobody is there.
        socket.create_connection((host.strip("[]"), int(port)), REACH_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(f"no Ray head answers at {head} ({error}): {_HEAD}") from None
    if _answers(head, None):
        if not insecure:
            raise ConfigError(
                f"the Ray cluster at {head} asks for no token, so whoever reaches it runs any code "
                "on it: start Ray with RAY_AUTH_MODE=token on all machines, or set ray_insecure = "
                "true if nobody else can reach it"
            )
        return
    found = token()
    if found is None:
        raise ConfigError(
            f"the Ray cluster at {head} asks for a token, and there is none here: copy that of the "
            "head to ~/.ray/auth_token, or set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
        )
    if not _answers(head, found):
        raise ConfigError(
            f"the Ray cluster at {head} has another token than the one here: copy that of the head "
            "to ~/.ray/auth_token, or set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
        )
    if insecure and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        raise ConfigError(f"the Ray cluster at {head} asks for a token: set RAY_AUTH_MODE=token")


def token() -> str | None:
    """Return the token of this machine, where Ray looks for it."""
    if given := os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return given
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _answers(head: str, token: str | None) -> bool:
    """Return whether the head answers to this token.

    Raises:
        SandboxUnavailable: it answers to nobody.
    """
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    with _channel(head) as channel:
        stub = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        try:
            stub.GetClusterId(
                gcs_service_pb2.GetClusterIdRequest(), timeout=REACH_TIMEOUT, metadata=metadata
            )
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                return False
            raise SandboxUnavailable(
                f"what answers at {head} is no Ray head, or its certificates are others "
                f"({error.details()}): {_HEAD}"
            ) from None
    return True


def _channel(head: str) -> grpc.Channel:
    if not certificates.are_used():
        return grpc.insecure_channel(head)
    certificate, key, authority = (Path(path).read_bytes() for path in certificates.files())
    return grpc.secure_channel(
        head,
        grpc.ssl_channel_credentials(
            root_certificates=authority, private_key=key, certificate_chain=certificate
        ),
    )
