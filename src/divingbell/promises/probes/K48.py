# mypy: ignore-errors
import os
import struct

from preamble import call, denied, judge

denied(lambda: os.setuid(0), "setuid")
denied(lambda: os.setresuid(0, 0, 0), "setresuid")
denied(lambda: os.setgid(0), "setgid")
denied(lambda: os.setgroups([0]), "setgroups")
everything = struct.pack("6I", *[0xFFFFFFFF] * 6)
judge(call("capset", struct.pack("Ii", 0x20080522, 0), everything)[0] == 0, "capset:")
PR_CAP_AMBIENT, RAISE, CAP_SYS_ADMIN = 47, 2, 21
judge(call("prctl", PR_CAP_AMBIENT, RAISE, CAP_SYS_ADMIN, 0, 0)[0] == 0, "ambient capability:")
PR_SET_NO_NEW_PRIVS = 38
judge(call("prctl", PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)[0] == 0, "no_new_privs taken back:")
