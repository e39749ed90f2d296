# mypy: ignore-errors
import os

from preamble import call, judge

NAME = b"divingbell-promise"
answer, _ = call("mq_open", NAME, os.O_CREAT | os.O_RDWR, 0o600, None)
judge(answer >= 0, "mq_open:")
call("mq_unlink", NAME)
