"""git, held short."""

import os
from pathlib import Path

import pytest

from divingbell.errors import ConfigError, SkillRefused
from divingbell.skills import git_command
from divingbell.skills.git_command import Git, GitFailed, checked_address, looks_like_address

from .catalogues import clone, commit_all, repository


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/team/skills.git",
        "https://example.org:8443/skills",
        "ssh://git@example.org:22/team/skills.git",
        "git@example.org:team/skills.git",
        "file:///srv/skills.git",
    ],
)
def test_addresses_of_three_kinds(address: str) -> None:
    assert looks_like_address(address) and checked_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c 'touch /tmp/x'",
        "fd::3",
        "http://example.org/x",
        "git://example.org/x",
        "ftp://example.org/x",
        "https://user:password@example.org/x",
        "https://-oProxyCommand=x/y",
        "ssh://-oProxyCommand=touch/x",
        "git@-oProxyCommand=x:y",
        "git@example.org::x",
        "git@example.org:-x",
        "file://host/x",
        "https://example.org/x y",
        "https://example.org/x\n-c",
        "https://example.org/" + "x" * 2000,
    ],
)
def test_all_other_addresses_are_refused(address: str) -> None:
    assert looks_like_address(address)
    with pytest.raises(SkillRefused, match="no address of a git repository"):
        checked_address(address)


@pytest.mark.parametrize("path", ["folder", "./folder", "/srv/skills", "../x", "a b"])
def test_folders_are_no_addresses(path: str) -> None:
    assert not looks_like_address(path)


@pytest.fixture
def bare(tmp_path: Path) -> Git:
    made = Git(tmp_path / "copy.git")
    made("init", "--quiet", "--bare", "--template=")
    return made


def test_git_itself_refuses_other_protocols(bare: Git) -> None:
    with pytest.raises(GitFailed, match="transport 'ext' not allowed"):
        bare("ls-remote", "--", "ext::sh -c 'touch /tmp/x'")


def test_settings_of_this_user_do_not_count(
    bare: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    settings = f"[core]\n\tsshCommand = touch {ran}\n[alias]\n\tshow-ref = !touch {ran}\n"
    (tmp_path / ".gitconfig").write_text(settings)
    for name, value in {
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.sshCommand",
        "GIT_CONFIG_VALUE_0": f"touch {ran}",
        "GIT_SSH": str(ran),
        "GIT_DIR": "/nowhere",
        "GIT_EXEC_PATH": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    assert bare("config", "--list", "--show-origin").count(b".gitconfig") == 0
    with pytest.raises(GitFailed):
        bare("ls-remote", "--", "ssh://nobody@127.0.0.1:1/x")
    assert not ran.exists()


def test_ssh_has_the_home_of_this_user_and_git_has_none(
    bare: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a home; touch ran"
    home.mkdir()
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$HOME" "$@" > "{tmp_path}/told"\nexit 1\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailed):
        bare("ls-remote", "--", "ssh://ann@example.org:22/x")
    told = (tmp_path / "told").read_text().splitlines()
    assert told[0] == str(home) and "-oBatchMode=yes" in told and "ann@example.org" in told
    assert bare("-c", "alias.home=!echo $HOME", "home") == b"/dev/null\n"


def test_what_is_larger_than_it_may_be_is_not_fetched(bare: Git, tmp_path: Path) -> None:
    address = repository(tmp_path / "r.git")
    work = clone(address, tmp_path / "work")
    (work / "large").write_bytes(os.urandom(3 << 20))
    commit_all(work)
    fetch = ("fetch", "--quiet", "--depth=1", "--", address, "main:seen")
    with pytest.raises(GitFailed):
        bare(*fetch, most=1 << 20)
    bare(*fetch)


def test_what_takes_too_long_is_ended(
    bare: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_command, "TIMEOUT", 0.2)
    os.mkfifo(tmp_path / "never")
    with pytest.raises(GitFailed, match=r"more than 0\.2 seconds"):
        bare("hash-object", "--no-filters", "--", str(tmp_path / "never"))


def test_without_git_it_is_said(bare: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="there is no git on this machine"):
        bare("version")
