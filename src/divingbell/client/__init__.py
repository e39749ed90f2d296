"""The library's words over HTTP: `from divingbell.client import Divingbell`."""

from divingbell.client.client import Divingbell
from divingbell.client.files import Files
from divingbell.client.session import Session

__all__ = ["Divingbell", "Files", "Session"]
