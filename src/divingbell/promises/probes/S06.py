# mypy: ignore-errors
import threading
import time


def late() -> None:
    time.sleep(0.3)
    print("LATE", flush=True)


threading.Thread(target=late).start()
print("started")
