"""Addresses on the web: which can be used, whose they are, and where they lead."""

import ipaddress
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def is_web(url: str) -> bool:
    """Whether a text is an address that can be asked."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(usable) and url.isprintable() and " " not in url


def is_issuer(url: str) -> bool:
    """Whether it can be that of an authorization server: https, or on this machine (RFC 8414)."""
    if not is_web(url) or "@" in url or "?" in url or "#" in url:
        return False
    return urlsplit(url).scheme == "https" or is_loopback(host_of(url))


def origin(url: str) -> str:
    """Return scheme, host and port, written in one way."""
    parts = urlsplit(url)
    host = host_of(url)
    shown = f"[{host}]" if ":" in host else host
    port = parts.port if parts.port != _PORTS.get(parts.scheme) else None
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


def host_of(url: str) -> str:
    """Return the host of an address, in small letters."""
    return urlsplit(url).hostname or ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return _number(host).is_loopback
    except ValueError:
        return host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost")


def is_inside(host: str) -> bool:
    """Whether a host is given by a number that the public network does not know."""
    try:
        return not _number(host).is_global
    except ValueError:
        # Resolvers take 127.1 and 0x7f000001 for numbers too.
        last = host.rstrip(".").rpartition(".")[2]
        return not last or last.isdigit() or last.startswith("0x") or is_loopback(host)


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    number = ipaddress.ip_address(host.partition("%")[0])
    return getattr(number, "ipv4_mapped", None) or number
