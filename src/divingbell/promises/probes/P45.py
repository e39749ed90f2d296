# mypy: ignore-errors
import os

from preamble import judge

OVERFLOW, OWN = 65534, 1000
# Without root the kernel forbids to drop the caller's groups; none of them has a name inside.
judge([group for group in os.getgroups() if group not in (OVERFLOW, OWN)], "groups of the host:")
judge([each for each in os.getresuid() + os.getresgid() if each != 1000], "uids and gids:")
