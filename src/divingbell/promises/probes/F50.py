# mypy: ignore-errors
import os
import shutil

os.chmod("/workspace", 0o777)
shutil.copy("/bin/true", "planted")
os.chmod("planted", 0o6777)
print("planted")
