# mypy: ignore-errors
import errno

from preamble import REFUSED, call, judge

AF_UNIX = 1
reached = {}
for family in range(0, 64):
    for kind in (1, 2, 3, 5):
        answer, number = call("socket", family, kind, 0)
        if family != AF_UNIX and (answer >= 0 or number not in REFUSED):
            reached[family] = errno.errorcode.get(number, number)
        # The upper half of a register is not what the kernel reads.
        answer, number = call("socket", family | 1 << 32, kind, 0)
        if family != AF_UNIX and (answer >= 0 or number not in REFUSED):
            reached[family] = "with garbage above"
judge(reached, "families that reach the kernel:")
