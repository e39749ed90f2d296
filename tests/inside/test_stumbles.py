"""What a program has stumbled over is seen in its tracebacks, and nowhere else."""

import pytest

from divingbell_inside.stumbles import traceback_stumble

FRAME = '  File "/usr/lib/python3.13/socket.py", line 233, in __init__\n    super()\n    ^^^^^\n'
REFUSED = f"Traceback (most recent call last):\n{FRAME}PermissionError: [Errno 1] No\n"
OTHER = '  File "/workspace/p.py", line 1, in <module>\nlib.errors.Failed: no answer\n'
AROUND = f"{REFUSED}\nDuring handling of the above exception, another one occurred:\n\n{OTHER}"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("", None),
        (REFUSED, ("network", "")),
        ("a line before\n" + REFUSED + "a line after\n", ("network", "")),
        (AROUND, ("network", "")),
        (REFUSED.replace("socket.py", "shutil.py"), None),
        (f"{FRAME}socket.gaierror: [Errno -3] Temporary failure\n", ("network", "")),
        (f"{FRAME}urllib.error.URLError: <urlopen error [Errno -2] Name>\n", ("network", "")),
        (f"{FRAME}OSError: [Errno 101] Network is unreachable\n", ("network", "")),
        (f"{FRAME}OSError: [Errno 28] No space left on device\n", None),
        (f"{FRAME}ModuleNotFoundError: No module named 'nosuch.part'\n", ("module", "nosuch")),
        (f"{FRAME}ModuleNotFoundError: No module named '__main__'\n", None),
        (f"{FRAME}ModuleNotFoundError: No module named 'json.nosuch'\n", None),
        (f"{FRAME}FileNotFoundError: [Errno 2] No such file: '/data/a.csv'\n", ("file", "")),
        (f"{FRAME}FileNotFoundError: [Errno 2] No such file: '/workspace/a'\n", None),
        (f"{FRAME}FileNotFoundError: [Errno 2] No such file: 'a.csv'\n", None),
        ("  File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'API_KEY'\n", ("key", "")),
        ("  File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'COLUMN'\n", None),
        ("  File \"p.py\", line 679, in f\nKeyError: 'API_KEY'\n", None),
        ("PermissionError: [Errno 1] Operation not permitted\n", None),
        ("OSError: [Errno 101] said by a program that wrote no traceback\n", None),
        ('  File "' + "x" * 16_000, None),
        (FRAME + "E" * 16_000, None),
        (FRAME + "E: " + "[Errno " * 2_000, None),
        (OTHER * 300, None),
    ],
)
def test_it_is_found(written: str, found: tuple[str, str] | None) -> None:
    assert traceback_stumble(written) == found
