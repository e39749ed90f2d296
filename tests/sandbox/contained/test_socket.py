import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

import divingbell_inside
from divingbell.host import profile
from divingbell.sandbox.contained.socket import ContainerSocket


def _connect(folder: Path, token: bytes) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.settimeout(5)
    line.connect(str(folder / "host.sock"))
    line.send(token)
    return line


async def test_whoever_knows_the_token_connects_and_the_socket_is_gone(tmp_path: Path) -> None:
    listening = ContainerSocket(tmp_path)
    assert os.listdir(tmp_path) == ["host.sock"]
    inside = _connect(tmp_path, listening.token.encode())
    pids = []
    line = await listening.accept(lambda pid: not pids.append(pid))  # type: ignore[func-returns-value]
    with inside, line:
        assert pids == [os.getpid()]
        assert os.listdir(tmp_path) == []
        line.send(b"hello")
        assert inside.recv(10) == b"hello"


async def test_a_token_works_once(tmp_path: Path) -> None:
    listening = ContainerSocket(tmp_path)
    path, aside = tmp_path / "host.sock", tmp_path / "aside"
    os.link(path, aside)  # as if someone had kept the name
    with (
        _connect(tmp_path, listening.token.encode()),
        await listening.accept(lambda pid: True),
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as again,
        pytest.raises(ConnectionRefusedError),
    ):
        again.connect(str(aside))


async def test_a_wrong_token_and_a_stranger_with_the_right_one_are_turned_away(
    tmp_path: Path,
) -> None:
    listening = ContainerSocket(tmp_path)
    answers = iter([False, True])
    accepting = asyncio.ensure_future(listening.accept(lambda pid: next(answers)))
    for token in (b"guessed", b"x" * 10_000, listening.token.encode()):
        with _connect(tmp_path, token) as line:
            assert await asyncio.to_thread(line.recv, 10) == b""
        assert not accepting.done()
    with _connect(tmp_path, listening.token.encode()), await accepting:
        pass


async def test_a_path_that_is_too_long_for_a_socket_will_do(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    listening = ContainerSocket(folder)
    assert (folder / "host.sock").is_socket()
    listening.close()
    assert not (folder / "host.sock").exists()


def test_the_token_is_wiped_out_of_what_the_kernel_shows() -> None:
    code = (
        "from divingbell_inside.container import take_token\n"
        "assert take_token() == b'secret-token'\n"
        "import os\n"
        "print(open('/proc/self/environ').read(), dict(os.environ))\n"
    )
    root = Path(divingbell_inside.__file__).parents[1]
    answer = subprocess.run(
        [profile.prepare().python, "-c", code],
        env={"A": "1", "DIVINGBELL_TOKEN": "secret-token", "B": "2", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert "A=1" in answer.stdout and "B=2" in answer.stdout
    assert "secret" not in answer.stdout and "TOKEN" not in answer.stdout
