"""A server that takes its time before it answers; the argument says how many seconds."""

import sys
import time

import rough

time.sleep(float(sys.argv[1]))
rough.serve({"tools/call": lambda _: rough.text("at last")})
