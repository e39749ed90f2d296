# mypy: ignore-errors
import os

HOME = os.path.expanduser("~")
for name in (
    ".bashrc", ".profile", ".config/systemd/user/x.service", ".config/autostart/x.desktop",
    ".gitconfig", ".git/hooks/post-checkout", ".ipython/profile_default/startup/x.py",
    ".pythonrc.py", ".config/matplotlib/matplotlibrc", ".local/lib/x.pth",
):  # fmt: skip
    os.makedirs(os.path.dirname(f"{HOME}/{name}"), exist_ok=True)
    with open(f"{HOME}/{name}", "w") as file:
        file.write("import builtins; builtins.planted = True  # planted\n")
for path in ("/workspace/planted", "/tmp/planted", "/dev/shm/planted"):
    with open(path, "w") as file:
        file.write("planted")
print("planted")
