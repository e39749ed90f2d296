# mypy: ignore-errors
from preamble import refused

refused("sethostname", b"x", 1)
refused("setdomainname", b"x", 1)
