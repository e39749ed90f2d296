# mypy: ignore-errors
import os
import site

planted = "import builtins; builtins.planted = True\n"
for folder in (os.getcwd(), os.path.expanduser("~"), site.getusersitepackages(), "/tmp"):
    os.makedirs(folder, exist_ok=True)
    for name in ("sitecustomize.py", "usercustomize.py", "planted.pth"):
        with open(f"{folder}/{name}", "w") as file:
            file.write(planted)
print("planted")
