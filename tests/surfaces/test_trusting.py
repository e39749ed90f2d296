"""A folder's settings are used once a person has said so, by every command."""

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.sources import Found
from divingbell.surfaces.cli import exit_status, trusting
from divingbell.trust import Trust, find
from tests.surfaces.test_cli import COMMAND, PATIENCE, environment

QUESTION = "Trust this, until it changes? [y/N] "
# The terminal must be the process's own, as it is for whoever types a command.
_AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Clone:
    """A folder with settings that start a program, and the home of whoever cloned it."""

    def __init__(self, above: Path) -> None:
        self.folder, self.home = above / "clone", above / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.settings, self.list = self.folder / "divingbell.toml", self.folder / "mcp.json"
        self.mark = above / "started"
        self.settings.write_text(
            f'pool = 0\n[servers.evil]\ncommand = "touch"\nargs = ["{self.mark}"]\n'
            'env = {TOKEN = "${GITHUB_TOKEN:-none}"}\n'
        )
        self.environment = {"HOME": str(self.home)}
        self.trust = Trust(above / "trusted.json")
        self.asked: list[str] = []
        self.told: list[str] = []

    def found(self, answer: bool | None = None, *, with_list: bool = True) -> Found:
        def ask(found: Found, reason: str) -> bool:
            self.asked.append(reason)
            return bool(answer)

        return find(
            self.folder,
            self.environment,
            with_list=with_list,
            trust=self.trust,
            ask=None if answer is None else ask,
            tell=self.told.append,
        )

    @property
    def command_environment(self) -> dict[str, str]:
        data = str(self.home / "data")
        ours = environment(XDG_DATA_HOME=data, XDG_CONFIG_HOME=str(self.home / ".config"))
        ours.setdefault("DIVINGBELL_HOME", os.path.expanduser("~/.cache/divingbell"))
        return ours

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command where nobody can be asked."""
        return subprocess.run(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.command_environment,
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )

    def at_terminal(self, typed: str, *arguments: str) -> tuple[int, str]:
        """Run a command at a terminal, type that when it asks; return its status and its words."""
        with _terminal() as (screen, theirs):
            process = subprocess.Popen(
                [sys.executable, "-c", _AT_TERMINAL, COMMAND, *arguments],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=self.folder,
                env=self.command_environment,
                start_new_session=True,
            )
            os.set_blocking(screen, False)
            seen, answered, ends = "", False, time.monotonic() + PATIENCE
            while process.poll() is None or select.select([screen], [], [], 0)[0]:
                if select.select([screen], [], [], 0.1)[0]:
                    seen += os.read(screen, 65536).decode()
                if QUESTION in seen and not answered:
                    answered = True
                    os.write(screen, typed.encode())
                if time.monotonic() > ends:
                    process.kill()
            return process.wait(PATIENCE), seen


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    screen, theirs = pty.openpty()
    try:
        yield screen, theirs
    finally:
        os.close(screen)
        os.close(theirs)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


# What is found


def test_where_nobody_can_be_asked_it_is_refused_with_the_way_out(clone: Clone) -> None:
    with pytest.raises(ConfigError) as caught:
        clone.found()
    words = str(caught.value)
    assert str(clone.settings) in words and "is not trusted yet" in words
    assert "divingbell trust" in words and "--config FILE" in words


def test_a_yes_lasts_until_a_file_changes(clone: Clone) -> None:
    clone.list.write_text('{"mcpServers": {}}')
    assert [source.path for source in clone.found(True).all] == [clone.settings, clone.list]
    assert clone.found().all and len(clone.asked) == 1
    clone.list.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    with pytest.raises(ConfigError, match=r"mcp\.json changed since it was trusted.*--mcp-config"):
        clone.found()
    clone.found(True)
    assert "changed since you trusted it" in clone.asked[-1]
    clone.settings.write_text("pool = 1")
    with pytest.raises(ConfigError, match=r"divingbell\.toml changed since it was trusted"):
        clone.found()


def test_a_list_that_comes_later_is_asked_about(clone: Clone) -> None:
    clone.found(True)
    clone.list.write_text('{"mcpServers": {}}')
    with pytest.raises(ConfigError, match=r"mcp\.json is not trusted yet"):
        clone.found()
    assert clone.found(with_list=False).servers is None  # another one is named


def test_a_list_that_the_settings_name_is_asked_about_too(clone: Clone) -> None:
    clone.settings.write_text('mcp_config = "below/list.json"')
    listed = clone.folder / "below/list.json"
    listed.parent.mkdir()
    listed.write_text('{"mcpServers": {}}')
    assert clone.found(True).servers is not None
    listed.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    with pytest.raises(ConfigError, match=r"list\.json changed"):
        clone.found()


def test_a_no_goes_on_as_if_the_files_were_not_there(clone: Clone) -> None:
    own = clone.home / ".config/divingbell/divingbell.toml"
    own.parent.mkdir(parents=True)
    own.write_text("pool = 3")
    assert clone.found(False).all[0].path == own
    assert clone.told == [f"going on without {clone.settings}: not trusted"]
    with pytest.raises(ConfigError, match="is not trusted yet"):
        clone.found()


def test_what_is_not_trusted_is_not_even_parsed(clone: Clone) -> None:
    clone.settings.write_text("not toml")
    with pytest.raises(ConfigError, match="is not trusted yet"):
        clone.found()


def test_a_folder_without_settings_leaves_its_list_alone(clone: Clone) -> None:
    clone.settings.unlink()
    clone.list.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    assert clone.found() == Found()


# The command


@pytest.mark.parametrize(
    "arguments",
    [
        ("exec", "1"),
        ("run", "divingbell.toml"),
        ("shell",),
        ("serve",),
        ("serve", "--http", "--port", "0"),
        ("servers",),
        ("login", "evil"),
        ("logout", "evil"),
        ("doctor",),
        ("image", "list"),
        ("image", "dockerfile", "out"),
        ("demo",),
    ],
    ids=" ".join,
)
def test_every_command_refuses_what_nobody_trusts(clone: Clone, arguments: tuple[str, ...]) -> None:
    done = clone.run(*arguments)
    assert done.returncode == exit_status.USAGE
    assert done.stdout == "" and f"{clone.settings} is not trusted yet" in done.stderr
    assert not clone.mark.exists()
    assert sorted(path.name for path in clone.folder.iterdir()) == ["divingbell.toml"]


def test_a_file_that_is_named_is_used(clone: Clone) -> None:
    done = clone.run("exec", "--config", "divingbell.toml", "6 * 7")
    assert (done.returncode, done.stdout) == (0, "42\n")
    assert "· servers: evil\n" in done.stderr
    done = clone.run("servers", "--json", "--config", "divingbell.toml")
    assert [state["name"] for state in json.loads(done.stdout)] == ["evil"]
    assert clone.mark.exists()


def test_a_yes_at_the_terminal_is_remembered_and_a_no_is_none(clone: Clone) -> None:
    status, seen = clone.at_terminal("n\n", "exec", "6 * 7")
    assert status == 0 and "42" in seen
    assert f"touch {clone.mark}" in seen and "GITHUB_TOKEN" in seen
    assert f"going on without {clone.settings}" in seen and "servers: evil" not in seen
    assert not clone.mark.exists()
    status, seen = clone.at_terminal("y\n", "trust")
    assert status == 0 and "trusted until it changes" in seen
    assert "servers: evil" in clone.run("exec", "1").stderr
    assert clone.mark.exists()


def test_the_end_of_input_is_a_no(clone: Clone) -> None:
    status, seen = clone.at_terminal("\x04", "trust")
    assert status == exit_status.FAILED and "not trusted" in seen


def test_what_is_trusted_is_listed_and_taken_back(clone: Clone) -> None:
    assert clone.at_terminal("yes\n", "trust")[0] == 0
    assert f"{clone.settings}: trusted\n" in clone.run("trust", "--list").stdout
    assert "trusted already" in clone.run("trust").stdout
    clone.settings.write_text("pool = 1")
    assert "has changed" in clone.run("trust", "--list").stdout
    done = clone.run("trust", "--revoke")
    assert done.stdout == f"{clone.settings}: not trusted any more\n"
    assert clone.run("trust", "--list").stdout == ""


def test_trust_needs_a_terminal_and_a_file(clone: Clone, tmp_path: Path) -> None:
    done = clone.run("trust")
    assert done.returncode == exit_status.USAGE and "no terminal" in done.stderr
    done = clone.run("trust", str(tmp_path))
    assert done.returncode == exit_status.USAGE and "there is no divingbell.toml" in done.stderr


def test_doctor_starts_no_server(clone: Clone) -> None:
    done = clone.run("doctor", "--json", "--config", "divingbell.toml")
    assert json.loads(done.stdout)["failure"] is None
    assert not clone.mark.exists()


def test_someone_elses_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with _terminal() as (_, theirs):
        monkeypatch.setattr(trusting, "_STDIN", theirs)
        monkeypatch.setattr(trusting, "_STDERR", theirs)
        assert trusting.asker() is None
