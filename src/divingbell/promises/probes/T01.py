# mypy: ignore-errors
# Everything that can be read without looking into memory. The secret has this form, and nothing
# else has.
import os
import re

from preamble import judge, pids

FORM = re.compile(rb"promise-[0-9a-f]{32}|PROMISE_SECRET")
found = [name for name, value in os.environ.items() if FORM.search(f"{name}={value}".encode())]
looked = len(os.environ)
for pid in pids():
    for part in ("environ", "cmdline", "mountinfo", "comm"):
        try:
            with open(f"/proc/{pid}/{part}", "rb") as file:
                looked += 1
                if FORM.search(file.read()):
                    found.append(file.name)
        except OSError:
            continue
for top in ("/servers", "/workspace", "/tmp", "/dev/shm", "/etc", "/run", os.path.expanduser("~")):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 4_000_000:
                    with open(path, "rb") as file:
                        looked += 1
                        if FORM.search(file.read()):
                            found.append(path)
            except OSError:
                continue
judge(found, f"{looked} variables and files")
