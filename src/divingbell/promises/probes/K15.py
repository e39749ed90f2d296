# mypy: ignore-errors
from preamble import refused

refused("init_module", 0, 0, 0)
refused("finit_module", -1, 0, 0)
refused("delete_module", 0, 0)
