# mypy: ignore-errors
import errno

from preamble import MACHINE, judge, machine_code, raw_call, safe

X32 = 0x40000000
if MACHINE != "x86_64":
    safe(f"{MACHINE} has no such second door")
else:
    for number in (39, 41, 56, 101, 165, 272, 512 + 8, 520, 521):
        answer, error = raw_call(X32 | number, 0, 0, 0)
        judge(answer >= 0 or error != errno.ENOSYS, f"x32 {number}")
    # mov eax, 0x4000003b | the number of getpid; syscall; ret
    answer = machine_code(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")
    judge(answer != -errno.ENOSYS, f"x32 by machine code: {answer}")
