# mypy: ignore-errors
# Run as a command: has it anything that a cell has not, or a limit less?
import ast
import os
import resource
import stat

from preamble import judge

more = {}
for name in os.listdir("/proc/self/fd"):
    try:
        more[int(name)] = os.fstat(int(name)).st_mode
    except OSError:
        continue  # the listing itself
judge([number for number in more if number > 2], "inherited descriptors:")
judge([number for number, mode in more.items() if stat.S_ISSOCK(mode)], "a socket to the host:")
judge(os.readlink("/proc/self/fd/0") != "/dev/null", "standard input:")
of_a_cell = ast.literal_eval(os.environ["OF_A_CELL"])
judge([os.getuid(), os.getgid(), os.getgroups()] != of_a_cell["identity"], "the identity:")
with open("/proc/self/status") as file:
    status = dict(line.split(":", 1) for line in file)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd"):
    judge(int(status[name], 16), name)
judge(int(status.get("NoNewPrivs", "1")) != 1, "new privileges:")
loose = {}
for name, (_, most) in of_a_cell["limits"].items():
    own = resource.getrlimit(getattr(resource, name))[1]
    if name in ("RLIMIT_DATA", "RLIMIT_AS"):  # each process is born with another size
        within = (own == resource.RLIM_INFINITY) == (most == resource.RLIM_INFINITY)
    else:
        within = own == most
    if not within:
        loose[name] = own, most
judge(loose, "limits:")
