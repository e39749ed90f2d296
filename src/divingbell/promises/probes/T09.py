# mypy: ignore-errors
# A socket with a name could be replaced by one's own, to harvest what others send to it.
import os
import socket
import stat

from preamble import IN_GVISOR, denied, judge, sockets

named = []
for top in os.listdir("/"):
    if top in ("proc", "usr", "opt", "lib", "lib64", "root"):
        continue  # what is read-only and the same for all
    for folder, folders, names in os.walk(f"/{top}"):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    named.append(path)
            except OSError:
                continue
judge(named, "sockets with a path:")


def names_of(line: socket.socket) -> list[object]:
    try:
        found = [name for name in (line.getpeername(), line.getsockname()) if name]
    except OSError:
        return []  # connected to nobody: one that an earlier probe has left, no line to the host
    # What gVisor makes up for a line to the host: no path, and nothing to connect to.
    return [name for name in found if not (IN_GVISOR and str(name).startswith("hostfd:["))]


lines = [*sockets(socket.SOCK_STREAM), *sockets(socket.SOCK_SEQPACKET)]
names = [name for line in lines for name in names_of(line)]
judge(names, f"{len(lines)} lines, names:")
denied(lambda: os.open("/servers/listen", os.O_CREAT | os.O_WRONLY), "a file in /servers")
denied(lambda: socket.socket(socket.AF_UNIX).bind("/servers/listen"), "a socket in /servers")
