"""Descriptors: the hard limit is compared with the sessions before anything starts."""

import os
import subprocess
import sys

from divingbell import Divingbell
from divingbell.host import descriptors
from divingbell.sandbox import registry

START = """
import asyncio, resource, sys
from divingbell import ConfigError, Divingbell

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024))

async def start(backend: str, **settings: int) -> None:
    try:
        async with Divingbell(backend=backend, **settings).starting():
            print("started", resource.getrlimit(resource.RLIMIT_NOFILE))
    except ConfigError as error:
        print(backend, error)

for backend in sys.argv[1:]:
    asyncio.run(start(backend))
asyncio.run(start("local", max_sessions=20, pool=0))
"""


def test_too_few_are_refused_at_the_start_whatever_the_backend() -> None:
    names = [*registry.names_of_ours(), "auto"]
    ran = subprocess.run(
        [sys.executable, "-c", START, *names], capture_output=True, text=True, timeout=60
    )
    *refusals, started = ran.stdout.splitlines()
    assert [line.split()[0] for line in refusals] == names, ran.stderr
    for line in refusals:
        assert "need 3522 open files, and this process may have 1024" in line
        assert "LimitNOFILE=3522" in line and "max_sessions and pool to 74 together" in line
    assert started == "started (1024, 1024)"  # the soft limit is raised


async def test_a_session_takes_no_more_than_is_reckoned() -> None:
    async with Divingbell(pool=0, preload=[]) as bell:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            await (await bell.open()).run("1 + 1")
        assert len(os.listdir("/proc/self/fd")) - before <= 3 * descriptors.PER_SESSION


def test_the_figure_that_is_named_is_enough() -> None:
    words = descriptors._too_few(302, 1024)
    possible = int(words.split("together")[0].split()[-1])
    assert descriptors.needed(possible) <= 1024 < descriptors.needed(possible + 1)
