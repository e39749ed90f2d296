# mypy: ignore-errors
from preamble import frame, tether

tether().sendall(frame(HEADER.encode("utf-8", "surrogatepass")))  # noqa: F821  (from the host)
