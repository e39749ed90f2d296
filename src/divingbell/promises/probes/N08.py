# mypy: ignore-errors
from preamble import refused

for family, kind, protocol in (
    (40, 1, 0), (38, 5, 0), (16, 3, 12), (16, 3, 0), (44, 3, 0), (15, 3, 2), (30, 1, 0), (31, 3, 1)
):  # fmt: skip
    refused("socket", family, kind, protocol)
    refused("socketpair", family, kind, protocol, b"\0" * 8)
