"""The file server: what it has done by the time that it says so."""

import os
import socket
import threading
from pathlib import Path

import pytest

from divingbell_inside import files, frames, layout


def test_a_file_that_breaks_off_takes_no_space_when_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "WORKSPACE", str(tmp_path))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(30)
        server = threading.Thread(target=files.serve, args=(theirs,))
        server.start()
        ours.sendall(frames.pack({"op": "put", "path": "file"}))
        assert frames.receive(ours) == ({"event": "go"}, b"")
        assert _open_files(tmp_path)
        ours.shutdown(socket.SHUT_WR)
        answer = frames.receive(ours)
        assert answer is not None and answer[0]["event"] == "refused"
        assert not list(tmp_path.iterdir())
        # A file that is removed takes its space until it is closed.
        assert not _open_files(tmp_path)
        server.join(30)


def _open_files(folder: Path) -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue  # that of this very list
    return [path for path in found if path.startswith(f"{folder}/")]
