"""The benchmark of chats works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_a_quick_run_measures_help_the_prompt_and_the_first_cell() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "chat.py", "--quick", "--no-install"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for words in ("divingbell --help", "≤ 30 ms", "≤ 500 ms", "≤ 2000 ms", "gptme", "llm chat"):
        assert words in done.stdout
