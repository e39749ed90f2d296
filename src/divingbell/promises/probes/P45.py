# mypy: ignore-errors
import os
import pwd

from preamble import judge

OVERFLOW = 65534
# In a container it may have a number of its own that is nobody's on the host.
OWN = pwd.getpwnam("diver").pw_uid
judge(OWN != 1000 and OWN < 1_000_000, "the uid could be someone's:")
# Without root the kernel forbids to drop the caller's groups; none of them has a name inside.
judge([group for group in os.getgroups() if group not in (OVERFLOW, OWN)], "groups of the host:")
judge([each for each in os.getresuid() + os.getresgid() if each != OWN], "uids and gids:")
