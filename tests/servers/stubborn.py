"""A server that does not want to leave, with a child that holds its pipes."""

import os
import signal
import subprocess
import sys
import time

import rough

signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(
    [
        sys.executable,
        "-c",
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)",
    ]
)
rough.serve({"tools/call": lambda _: rough.text(f"{os.getpid()} {child.pid}")})
time.sleep(300)
