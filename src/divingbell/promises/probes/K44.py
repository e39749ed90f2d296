# mypy: ignore-errors
import shutil
import struct
import subprocess

from preamble import MACHINE, judge, machine_code, refused, safe

NAMES = {
    "user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000,
    "uts": 0x4000000, "cgroup": 0x2000000,
}  # fmt: skip
for flag in NAMES.values():
    refused("unshare", flag)
    refused("clone", flag | 17, 0, 0, 0, 0)
    refused("clone", flag | 17 | 1 << 32, 0, 0, 0, 0)
    refused("clone3", struct.pack("11Q", flag, *[0] * 10), 88)
refused("setns", -1, 0)
for program in (
    ["unshare", "-U", "true"],
    ["unshare", "-r", "true"],
    ["bwrap", "--ro-bind", "/", "/", "true"],
):
    if shutil.which(program[0]):
        code = subprocess.run(program, capture_output=True, timeout=10).returncode
        judge(code == 0, f"{program} answered {code}")
if MACHINE == "x86_64":
    # mov eax, 272 (unshare); mov edi, CLONE_NEWUSER; syscall; ret
    answer = machine_code(b"\xb8\x10\x01\x00\x00\xbf\x00\x00\x00\x10\x0f\x05\xc3")
    judge(answer != -1, f"unshare by machine code: {answer}")
else:
    safe("machine code is tried on x86-64")
