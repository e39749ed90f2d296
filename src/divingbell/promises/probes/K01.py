# mypy: ignore-errors
import os
import signal
import time

from preamble import refused

PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_TRACEME = 16, 0x4206, 0
child = os.fork()
if child == 0:
    time.sleep(30)
    os._exit(0)
for target in (child, 1):
    refused("ptrace", PTRACE_ATTACH, target, 0, 0)
    refused("ptrace", PTRACE_SEIZE, target, 0, 0)
    refused("process_vm_readv", target, bytes(16), 1, bytes(16), 1, 0)
    refused("process_vm_writev", target, bytes(16), 1, bytes(16), 1, 0)
refused("ptrace", PTRACE_TRACEME, 0, 0, 0)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
