# mypy: ignore-errors
import os

os.kill(-1, 9)
print("SAFE still here")
