# mypy: ignore-errors
from preamble import refused

# What the escapes of recent years needed first.
refused("bpf", 5, bytes(128), 128)
refused("socket", 16, 3, 12)  # nf_tables
refused("socket", 17, 3, 3)  # packet
refused("socket", 38, 5, 0)  # AF_ALG
refused("socket", 40, 1, 0)  # vsock
refused("unshare", 0x10000000)
refused("mount", b"overlay", b"/tmp", b"overlay", 0, b"")
refused("fsopen", b"ext4", 0)
refused("userfaultfd", 0)
refused("io_uring_setup", 8, bytes(120))
refused("vmsplice", 1, bytes(16), 1, 0)
refused("add_key", b"keyring", b"x", 0, 0, -3)
refused("perf_event_open", bytes(128), 0, -1, -1, 0)
