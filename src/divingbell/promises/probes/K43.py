# mypy: ignore-errors
from preamble import refused

ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, PER_LINUX32 = 0x0040000, 0x0400000, 0x0008
for persona in (ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, READ_IMPLIES_EXEC | PER_LINUX32):
    refused("personality", persona)
    refused("personality", persona | 1 << 32)
