# mypy: ignore-errors
from preamble import refused

PR_SET_SECCOMP, PR_SET_MM = 22, 35
refused("seccomp", 1, 0, bytes(16))
refused("seccomp", 1, 8, bytes(16))  # a listener: it would answer the calls of others
refused("seccomp", 2, 0, bytes(4))
refused("prctl", PR_SET_SECCOMP, 2, bytes(16), 0, 0)
refused("prctl", PR_SET_SECCOMP | 1 << 32, 2, bytes(16), 0, 0)
refused("prctl", PR_SET_MM, 1, 0, 0, 0)
