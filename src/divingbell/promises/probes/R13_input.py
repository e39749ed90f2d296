# mypy: ignore-errors
import os
import sys

from preamble import judge, safe, unsafe

judge(os.read(0, 10), "standard input holds:")
judge(sys.stdin.read(), "sys.stdin holds:")
try:
    unsafe(input("? "))
except EOFError as error:
    safe(error)
