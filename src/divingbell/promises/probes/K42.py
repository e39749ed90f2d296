# mypy: ignore-errors
from preamble import refused

for command in (0, 5, 8, 18):
    refused("bpf", command, bytes(128), 128)
