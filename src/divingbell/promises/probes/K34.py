# mypy: ignore-errors
import signal

from preamble import MACHINE, in_child, judge, machine_code, safe

if MACHINE != "x86_64":
    safe(f"{MACHINE} has no such second door")
else:
    # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    how = in_child(lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"))
    judge(how != ("signal", signal.SIGSYS), f"int 0x80 ends with {how}")
