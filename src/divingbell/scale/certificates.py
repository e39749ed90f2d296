"""The certificates of a cluster, for lines that go over a network: those that Ray has, too."""

import os
import ssl
from typing import NamedTuple

from divingbell.errors import ConfigError

NAMES = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


class Contexts(NamedTuple):
    """For both ends of a line; both show a certificate of the cluster's authority."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def contexts() -> Contexts | None:
    """Return contexts of the certificates that are named; None where Ray does without TLS.

    Raises:
        ConfigError: a file is missing, or is none of a certificate.
    """
    if not are_used():
        return None
    certificate, key, authority = files()
    return Contexts(
        _context(ssl.PROTOCOL_TLS_SERVER, certificate, key, authority),
        _context(ssl.PROTOCOL_TLS_CLIENT, certificate, key, authority),
    )


def are_used() -> bool:
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def files() -> tuple[str, str, str]:
    """Return the files of the certificate, of its key, and of the cluster's authority.

    Raises:
        ConfigError: one is not named.
    """
    found = [os.environ.get(name, "") for name in NAMES]
    if not all(found):
        raise ConfigError(f"RAY_USE_TLS is on: set {', '.join(NAMES)}, too")
    return found[0], found[1], found[2]


def _context(kind: int, certificate: str, key: str, authority: str) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"RAY_USE_TLS is on, and Ray's certificates can't be used ({error}): see "
            f"{', '.join(NAMES)}"
        ) from None
    context.verify_mode = ssl.CERT_REQUIRED
    return context
