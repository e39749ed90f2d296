# mypy: ignore-errors
import os
import shutil
import stat
import subprocess
import sys

from preamble import judge, libc, safe, unsafe

PR_GET_NO_NEW_PRIVS = 39
judge(libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, "no_new_privs")
# A setuid copy of a program in every place that can be written: run it, look at its uid.
for folder in ("/workspace", "/tmp", "/dev/shm", os.path.expanduser("~")):
    path = f"{folder}/id-with-setuid"
    shutil.copy(shutil.which("id") or sys.executable, path)
    os.chmod(path, 0o6755)
    if not os.stat(path).st_mode & stat.S_ISUID:
        safe(f"{folder}: no setuid bit")
        continue
    answer = subprocess.run([path, "-u"], capture_output=True, text=True)
    (safe if answer.stdout.strip() == str(os.getuid()) else unsafe)(f"{folder} {answer.stdout}")
