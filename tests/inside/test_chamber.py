import array
import fcntl
import os
import subprocess
import sys

import pytest

from divingbell_inside import chamber

KEEPING = """
from divingbell_inside import kernel
kernel.drop_capabilities(kept=[kernel.CAP_KILL, kernel.CAP_SETUID])
with open("/proc/self/status") as file:
    print({name: int(value, 16) for name, value in
           (line.split() for line in file if line.startswith("Cap"))})
"""
NS_GET_OWNER_UID = 0xB704
GIVING = """
import os, signal
from divingbell_inside import kernel
kernel.own_namespaces_as(1_900_000_000)
with open("/proc/self/status") as file:
    held = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))
kernel.unshare(kernel.CLONE_NEWUSER)
with open("/etc/shadow") as file:  # the capabilities are of the new namespace only now
    print(held > 0, file.readable(), flush=True)
signal.pause()
"""


def test_the_first_process_is_root_in_gvisor_only() -> None:
    host = os.uname()
    with pytest.raises(PermissionError, match="is not gVisor"):
        chamber.insist_on_another_kernel([host.release, host.version])
    chamber.insist_on_another_kernel(["4.4.0", "#1 SMP Sun Jan 10 15:06:54 PST 2016"])


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else has capabilities to give up")
def test_capabilities_that_are_kept_are_kept_by_this_process_only() -> None:
    done = subprocess.run([sys.executable, "-c", KEEPING], capture_output=True, text=True)
    both = 1 << 5 | 1 << 7
    expected = {"CapInh:": 0, "CapPrm:": both, "CapEff:": both, "CapBnd:": 0, "CapAmb:": 0}
    assert done.stdout.strip() == str(expected), done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can be someone else")
def test_a_namespace_belongs_to_who_is_to_be_charged_for_it() -> None:
    giving = subprocess.Popen([sys.executable, "-c", GIVING], stdout=subprocess.PIPE, text=True)
    with giving:
        assert giving.stdout is not None
        # Its capabilities and the rights to files are those that it had.
        assert giving.stdout.readline() == "True True\n"
        owner = array.array("I", [0])
        with open(f"/proc/{giving.pid}/ns/user", "rb") as namespace:
            fcntl.ioctl(namespace, NS_GET_OWNER_UID, owner)
        giving.kill()
    assert owner[0] == 1_900_000_000
