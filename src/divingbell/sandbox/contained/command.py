"""The command that a container runs, and what it needs beside the limits of its session."""

from divingbell_inside import layout

COMMAND = (
    f"{layout.PROFILE}/bin/python",
    "-I",
    f"{layout.INSIDE}/divingbell_inside/container.py",
)
CAPABILITIES = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_SYS_ADMIN")
"""Of the first process in gVisor, and within that kernel only: it is root there and the code that
it starts is not, which can then do nothing to it. It keeps the first three, its children none."""
HOST_THREADS_PER_PROCESS, OWN_THREADS = 4, 512
"""How many of the host's threads gVisor takes for a process inside, and for itself."""

EXPENDABLE = 500
"""gVisor's score for the host's out-of-memory killer: it goes before the host process does."""
PART_OF_DISK = 4
"""The home folder and /dev/shm have this part of the disk each, /workspace and /tmp all of it:
they are mounts of their own, since nobody in a container may divide one."""

OWN_MEMORY, OWN_MEMORY_IN_GVISOR = 80 << 20, 256 << 20
"""What an interpreter with the packages of the default profile takes before it does anything, and
gVisor's kernel with it. The limit of a session is meant for what the session does. With gVisor a
fresh session was seen to take 145 MB, and a file server up to 58 MB more."""


def own_memory(*, in_gvisor: bool) -> int:
    """How many bytes a container needs beside the memory limit of its session."""
    return OWN_MEMORY_IN_GVISOR if in_gvisor else OWN_MEMORY


def host_threads(processes: int) -> int:
    """How many threads of the host a gVisor with so many processes may have."""
    return processes * HOST_THREADS_PER_PROCESS + OWN_THREADS
