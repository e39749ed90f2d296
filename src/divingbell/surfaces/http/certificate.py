"""The certificate that clients are shown, taken up anew when its files change."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from divingbell import logs
from divingbell.errors import ConfigError

log = logs.logger("divingbell")

LOOK_EVERY = 10.0
"""Seconds between two looks at the files."""
Look = tuple[tuple[int, int, int], ...]
"""What tells one state of the files from another."""


class Certificate:
    """A certificate, with those that vouch for it, and its private key, in PEM files.

    Connections that are open keep the certificate that they began with.
    """

    def __init__(self, chain: Path, key: Path | None = None) -> None:
        """Without `key`, the private key is in the file of the certificate.

        Raises:
            ConfigError: the files can't be read, or do not belong together.
        """
        self._chain = chain
        self._key = key or chain
        self._seen = self._look()
        self.context = _context()
        self._load(self.context)

    @contextlib.asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Take up files that change, in the meantime."""
        following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            following.cancel()
            await asyncio.wait([following])

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.renew()

    def renew(self) -> None:
        """Take up the files if they have changed. Those that can't be used change nothing."""
        try:
            seen = self._look()
            if seen == self._seen:
                return
            self._seen = seen
            self._load(_context())  # a pair that does not fit would spoil the one that is in use
            self._load(self.context)
        except ConfigError as error:
            log.warning("%s; clients are shown the certificate from before", error)
            return
        log.info("the certificate in %s was taken up", self._chain)

    def _look(self) -> Look:
        try:
            found = [path.stat() for path in (self._chain, self._key)]
        except OSError as error:
            raise ConfigError(f"{error.filename} can't be read: {error.strerror}") from None
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._chain, self._key, password=_no_password)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise ConfigError(
                f"{self._chain} and {self._key} are no certificate with its private key, in PEM: "
                f"{reason}"
            ) from None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Refuse to ask at the terminal, which OpenSSL would do."""
    raise ValueError("the private key has a password; give one without")
