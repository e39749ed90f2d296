"""What runs in a container, and how the disk is divided there."""

from divingbell_inside import layout

COMMAND = (
    f"{layout.PROFILE}/bin/python",
    "-I",
    f"{layout.INSIDE}/divingbell_inside/container.py",
)
HOST_THREADS_PER_PROCESS, OWN_THREADS = 4, 512
"""How many of the host's threads gVisor takes for a process inside, and for itself."""

PART_OF_DISK = 4
"""The home folder and /dev/shm have this part of the disk each, /workspace and /tmp all of it:
they are mounts of their own, since nobody in a container may divide one."""

OWN_MEMORY = {"runc": 80 << 20, "runsc": 176 << 20}
"""What an interpreter with the packages of the default profile takes before it does anything, and
gVisor's kernel with it. The limit of a session is meant for what the session does."""


def host_threads(processes: int) -> int:
    """How many threads of the host a gVisor with so many processes may have."""
    return processes * HOST_THREADS_PER_PROCESS + OWN_THREADS
