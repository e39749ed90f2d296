# mypy: ignore-errors
from preamble import refused

for name in (
    "acct", "kcmp", "lookup_dcookie", "mbind", "memfd_secret", "migrate_pages", "move_pages",
    "nfsservctl", "process_madvise", "set_mempolicy", "get_mempolicy", "uselib", "ustat", "sysfs",
    "vhangup", "vmsplice", "_sysctl", "create_module", "query_module", "get_kernel_syms", "vserver",
    "set_mempolicy_home_node", "lsm_set_self_attr", "listns", "file_setattr",
):  # fmt: skip
    refused(name)
