# mypy: ignore-errors
import ctypes
import errno
import os
import shutil
import subprocess
import tempfile

from preamble import MACHINE, judge, machine_code, safe

SOURCE = "#include <sys/socket.h>\n#include <errno.h>\nint probe(void)"
SOURCE += "{ return socket(AF_INET, SOCK_STREAM, 0) < 0 ? -errno : 1; }\n"
if MACHINE == "x86_64":
    # mov eax, 41 (socket); mov edi, AF_INET; mov esi, SOCK_STREAM; xor edx, edx; syscall; ret
    code = b"\xb8\x29\x00\x00\x00\xbf\x02\x00\x00\x00\xbe\x01\x00\x00\x00\x31\xd2\x0f\x05\xc3"
    answer = machine_code(code)
    judge(answer != -errno.EPERM, f"socket by machine code: {answer}")
if compiler := shutil.which("gcc") or shutil.which("cc"):
    folder = tempfile.mkdtemp()
    with open(f"{folder}/probe.c", "w") as file:
        file.write(SOURCE)
    built = subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", f"{folder}/probe.so", f"{folder}/probe.c"],
        capture_output=True,
    )
    if built.returncode == 0:
        answer = ctypes.CDLL(f"{folder}/probe.so").probe()
        judge(answer != -errno.EPERM, f"socket by a library of our own: {answer}")
status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
judge("Seccomp:\t2" not in status, "a program that was run has the same filter")
safe(os.uname().machine)
