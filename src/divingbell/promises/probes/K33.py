# mypy: ignore-errors
import os

from preamble import denied, refused

denied(lambda: os.chroot("/tmp"), "chroot")
refused("chroot", b"/workspace")
