"""The layout inside: paths, identity and environment of a session."""

USER = "diver"
UID = 1000
HOME = "/home/diver"
WORKSPACE = "/workspace"
SERVERS = "/servers"
OUTPUTS = "/workspace/.outputs"
PROFILE = "/opt/profile"
INSIDE = "/opt/divingbell"
TEMPLATE = "/template"
HOST_FOLDERS = "/host-folders"
HOSTNAME = "divingbell"
SOCKET_FOLDER = "/run/divingbell"
"""In a container: a folder with nothing but the socket to the host, until that is used."""
SOCKET = f"{SOCKET_FOLDER}/host.sock"
TOKEN = "DIVINGBELL_TOKEN"
TOKEN_FILE = f"{SOCKET_FOLDER}/token"
"""Where the token is for a container that is restored: its environment is of the time before."""

# One sized tmpfs a session holds all that can be written; these are its parts.
WRITABLE = {"workspace": WORKSPACE, "tmp": "/tmp", "home": HOME, "shm": "/dev/shm"}

OWN_PROCESSES = 3
"""Those that are not the user's: the supervisor, the waiting copy and a file server."""
PENDING_SIGNALS = 1024
"""Signals that may wait in a session; each POSIX timer holds one."""
LOST_LINE = 70
"""Exit status of an interpreter that has lost its line to the host."""

INODES_PER_MEGABYTE = 256


def inodes_of(disk: int) -> int:
    """Return the number of files that a disk of this size may hold: each takes memory of the
    kernel."""
    return max(1024, (disk >> 20) * INODES_PER_MEGABYTE)


IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")
"""Forms of displays that can be seen, the best first."""
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/svg+xml": ".svg",
    "text/plain": ".txt",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/latex": ".tex",
    "application/pdf": ".pdf",
    "application/javascript": ".js",
}


def suffix_of(kind: str) -> str:
    """Return the end of the name of a file with this form of a display."""
    return SUFFIXES.get(kind) or (".json" if kind.endswith("json") else ".bin")


TABLE_WIDTH = 1000
"""Columns of text: models read wider lines than terminals have. Fifty numbers fit."""
TABLE_COLUMNS = 100
TABLE_CELL = 120
"""Characters of one cell of a table."""

DEVICES = ("null", "zero", "full", "random", "urandom")

ENVIRONMENT = {
    # First our stand-ins for programs that can't work here, such as pip.
    "PATH": f"{INSIDE}/divingbell_inside/bin:{PROFILE}/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": HOME,
    "USER": USER,
    "LOGNAME": USER,
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "VIRTUAL_ENV": PROFILE,
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MPLCONFIGDIR": f"{HOME}/.config/matplotlib",
    # Polars reads these when it prints, and its own `Config` writes them.
    "POLARS_TABLE_WIDTH": str(TABLE_WIDTH),
    "POLARS_FMT_MAX_COLS": str(TABLE_COLUMNS),
    "POLARS_FMT_STR_LEN": str(TABLE_CELL),
    # A thread pool at import would forbid the fork of a loaded interpreter.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}

# malloc reserves 64 MB of addresses for every few threads. In gVisor only addresses can be
# limited: those would be lost for data, or be data that no limit has counted.
GVISOR_ENVIRONMENT = {**ENVIRONMENT, "MALLOC_ARENA_MAX": "1"}

ETC = {
    "passwd": (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{USER}:x:{UID}:{UID}:{USER}:{HOME}:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "group": f"root:x:0:\n{USER}:x:{UID}:\nnogroup:x:65534:\n",
    "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
    "hostname": f"{HOSTNAME}\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
