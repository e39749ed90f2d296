"""Addresses: two that are one place are written alike, and two places are not."""

import pytest

from divingbell.settings.addresses import is_inside, is_issuer, is_loopback, is_web, origin


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Example.COM:443/a?b#c", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("https://user:word@example.com:8443/x", "https://example.com:8443"),
        ("https://[2001:DB8::1]:444/", "https://[2001:db8::1]:444"),
        ("https://example.com@evil.example/", "https://evil.example"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, expected: str) -> None:
    assert origin(url) == expected


def test_only_addresses_of_the_web_can_be_asked() -> None:
    assert is_web("https://example.com/mcp") and is_web("http://127.0.0.1:5/")
    for url in ("", "ftp://example.com", "https://", "https://a b/", "https://a:0/", "https://a\n"):
        assert not is_web(url)


def test_an_issuer_is_reached_over_https_or_is_here() -> None:
    assert is_issuer("https://example.com/tenant") and is_issuer("http://localhost:5")
    for url in ("http://example.com", "https://example.com?a", "https://a@example.com"):
        assert not is_issuer(url)


def test_hosts_of_this_machine_and_this_network_are_known() -> None:
    assert is_loopback("127.9.9.9") and is_loopback("::1") and is_loopback("a.localhost.")
    assert not is_loopback("example.com")
    for host in ("10.1.2.3", "169.254.169.254", "fe80::1%eth0", "127.1", "0x7f.1", "", "localhost"):
        assert is_inside(host), host
    for host in ("example.com", "8.8.8.8", "2606:4700::1111"):
        assert not is_inside(host), host
