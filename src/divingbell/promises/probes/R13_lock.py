# mypy: ignore-errors
import threading

lock = threading.Lock()
lock.acquire()
lock.acquire()
