# mypy: ignore-errors
from preamble import refused

for name in (
    "mount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree",
    "mount_setattr", "open_tree_attr", "statmount", "listmount",
):  # fmt: skip
    refused(name)
