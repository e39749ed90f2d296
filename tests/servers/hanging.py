"""A server that reads and never answers."""

import sys

sys.stderr.write("still thinking\n")
sys.stderr.flush()
for _ in sys.stdin:
    pass
