# mypy: ignore-errors
import atexit
import threading
import time

atexit.register(time.sleep, 1000)
threading.Thread(target=time.sleep, args=(1000,)).start()


class Stuck:
    def __del__(self) -> None:
        time.sleep(1000)


kept = Stuck()
print("waiting")
