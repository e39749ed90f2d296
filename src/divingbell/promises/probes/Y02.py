# mypy: ignore-errors
import re
import sys

from preamble import judge

SECRET = re.compile(r"(?i)(api_?key|token|secret|passw|credential|authori[sz]ation)")
# Names of the standard library that mean something else.
HARMLESS = re.compile(r"(?i)(tokenize|tokeniz|token_bytes|secrets?$|^token$|__)")
found = []
frame = sys._getframe()
try:
    raise ValueError
except ValueError as error:
    frame = error.__traceback__.tb_frame
depth = 0
while frame is not None:
    for names in (frame.f_locals, frame.f_globals):
        for name, value in list(names.items()):
            if SECRET.search(name) and not HARMLESS.search(name) and isinstance(value, str | bytes):
                found.append((frame.f_code.co_name, name))
    frame, depth = frame.f_back, depth + 1
judge(found, f"secrets in {depth} frames:")
