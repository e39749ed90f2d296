# mypy: ignore-errors
import os

from preamble import denied

FLAGS = os.O_CREAT | os.O_WRONLY
for path in (
    "/opt/profile/x.pth", "/opt/divingbell/divingbell_inside/x.py", "/opt/x", "/servers/x.py",
    "/skills/x.py", "/template/x", "/host-folders/x", "/etc/passwd", "/etc/ld.so.preload",
    "/usr/lib/x.so", "/usr/bin/sh",
):  # fmt: skip
    denied(lambda path=path: os.open(path, FLAGS), path)
denied(lambda: os.chmod("/opt/profile", 0o777), "chmod /opt/profile")
denied(lambda: os.utime("/etc/passwd"), "utime /etc/passwd")
denied(lambda: os.rename("/opt/profile", "/opt/other"), "rename /opt/profile")
denied(lambda: os.truncate("/etc/hosts", 0), "truncate /etc/hosts")
denied(lambda: os.setxattr("/etc/passwd", "user.x", b"x"), "setxattr /etc/passwd")
