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
