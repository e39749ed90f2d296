"""Descriptors: how many files this process may have open, and how many its sessions need."""

import resource

from divingbell.errors import ConfigError

PER_SESSION = 11
"""Measured: 8 with gVisor, 9 with local, 11 with Docker, and one more while a file is passed."""
OF_THE_HOST = 200
"""For all else: the loop, logs, SQLite, servers and connections of clients."""


def needed(sessions: int) -> int:
    """Return how many descriptors a host with this many sessions needs."""
    return sessions * PER_SESSION + OF_THE_HOST


def allow_for(sessions: int) -> None:
    """Let this process have as many as it may: the usual 1024 are meant for programs with select.

    Raises:
        ConfigError: that is too few for so many sessions.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < needed(sessions):
        raise ConfigError(_too_few(sessions, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _too_few(sessions: int, most: int) -> str:
    wanted, possible = needed(sessions), (most - OF_THE_HOST) // PER_SESSION
    smaller = f", or set max_sessions and pool to {possible} together" if possible > 0 else ""
    return (
        f"{sessions} sessions (max_sessions and pool) need {wanted} open files, and this process "
        f"may have {most}: start it with a hard limit of {wanted} (LimitNOFILE={wanted} in a "
        f"systemd unit, --ulimit nofile={wanted} for Docker, `ulimit -Hn {wanted}` as root)"
        f"{smaller}"
    )
