# mypy: ignore-errors
import os

child = os.fork()  # so that there is someone to kill besides what the session keeps for itself
if child == 0:
    import time

    time.sleep(100)
os.kill(-1, 9)
print("SAFE still here")
