# mypy: ignore-errors
import builtins
import subprocess
import sys

from preamble import judge

judge(hasattr(builtins, "planted"), "ran in the next session:")
code = "import builtins; print(hasattr(builtins, 'planted'))"
for flags in ([], ["-I"]):
    answer = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True)
    judge(answer.stdout.strip() != "False", f"ran in a new interpreter {flags}: {answer.stdout}")
