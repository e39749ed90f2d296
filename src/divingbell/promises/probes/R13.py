# mypy: ignore-errors
import time

time.sleep(1e6)
