# mypy: ignore-errors
from preamble import refused

PRIVATE_ANONYMOUS, MAP_HUGETLB, MFD_HUGETLB = 0x22, 0x40000, 0x4
for size in (0, 21 << 26, 30 << 26):  # the usual one, 2 MB and 1 GB
    refused("mmap", 0, 1 << 21, 3, PRIVATE_ANONYMOUS | MAP_HUGETLB | size, -1, 0)
    refused("memfd_create", b"huge", MFD_HUGETLB | size)
