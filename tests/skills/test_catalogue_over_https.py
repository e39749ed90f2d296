"""A catalogue behind https: git with all its limits, over a real transport."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from divingbell.errors import SkillRefused
from divingbell.skills import git_command, git_repository, skill_file
from divingbell.skills.git_command import GitFailed
from divingbell.skills.git_repository import HistoryRewritten

from .catalogues import Reader, clone, commit_all
from .git_server import GitServer, Handler, git_server
from .samples import made

NAME = "top-customers"
OTHER = "def run():\n    return 2\n"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GitServer]:
    """A server that this user's git trusts."""
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "authority.pem"))
    monkeypatch.setenv("NO_PROXY", "localhost")
    with git_server(tmp_path / "served", authority) as server:
        yield server


@pytest.fixture
def place(server: GitServer) -> str:
    return server.address("catalogue.git")


@pytest.fixture
def publisher(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "publisher")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "reader")


def test_what_is_published_is_installed_and_updated(
    place: str, publisher: Reader, reader: Reader
) -> None:
    assert publisher.publish(made(), place).is_new
    assert not publisher.publish(made(), place).is_new
    assert reader.install(place, NAME).skill == made()
    # More than git sends in one piece, and than its pipes hold.
    large = skill_file.make(NAME, "Large.", files={"assets/large.bin": os.urandom(3 << 20)})
    assert publisher.publish(large, place).statement.version == 2
    assert reader.propose(place, NAME).doubts == []
    kept = reader.install(place, NAME)
    assert kept.skill == large and kept.record.source == place


def test_a_history_that_was_rewritten_is_told(
    server: GitServer, place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    reader.install(place, NAME)
    work = clone(f"file://{server.folder}/catalogue.git", tmp_path / "work")
    (work / "README").write_text("new")
    commit_all(work, amend=True)
    with pytest.raises(HistoryRewritten):
        reader.install(place, NAME)


def test_a_certificate_that_nobody_trusts_ends_it(
    server: GitServer, place: str, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_SSL_CAINFO")
    # What a user has set for their own work with git, or somebody else for them, does not count.
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")
    with pytest.raises(GitFailed, match="certificate"):
        reader.install(place, NAME)
    assert server.asked == []


def test_what_is_too_large_is_not_fetched_and_leaves_nothing(
    server: GitServer,
    place: str,
    publisher: Reader,
    reader: Reader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher.publish(made(), place)
    work = clone(f"file://{server.folder}/catalogue.git", tmp_path / "work")
    (work / "large").write_bytes(os.urandom(3 << 20))
    commit_all(work)
    with monkeypatch.context() as patched:
        patched.setattr(git_repository, "MOST_FETCHED", 1 << 20)
        with pytest.raises(GitFailed):
            reader.install(place, NAME)
    copies = reader.data / "catalogues"
    assert sum(path.stat().st_size for path in copies.rglob("*") if path.is_file()) < 100_000
    assert reader.install(place, NAME).skill == made()


def test_nobody_is_asked_for_a_password_and_none_is_sent(
    server: GitServer,
    place: str,
    reader: Reader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even one that lies there for other programs: it is not said for catalogues."""
    (tmp_path / ".netrc").write_text("machine localhost login ann password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    sent = list[str | None]()

    def asks(handler: Handler) -> bool:
        sent.append(handler.headers.get("Authorization"))
        handler.say(401, **{"WWW-Authenticate": 'Basic realm="catalogue"'})
        return True

    server.answer = asks
    with pytest.raises(GitFailed, match=r"could not read Username|Authentication failed"):
        reader.install(place, NAME)
    assert set(sent) == {None}


@pytest.mark.parametrize("scheme", ["http", "ftp", "file", "ext"])
def test_it_leads_to_no_other_protocol(
    server: GitServer, place: str, publisher: Reader, reader: Reader, scheme: str
) -> None:
    publisher.publish(made(), place)

    def leads_away(handler: Handler) -> bool:
        where = handler.path.replace("catalogue", "other")
        handler.say(302, Location=f"{server.address('', scheme).rstrip('/')}{where}")
        return True

    server.answer = leads_away
    asked = len(server.asked)
    with pytest.raises(GitFailed, match=r'Protocol "\w+" |target URL could not be parsed'):
        reader.install(place, NAME)
    assert len(server.asked) == asked + 1


def test_a_server_that_says_no_more_is_not_waited_for(
    server: GitServer, place: str, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(git_command._CONFIGURATION, "http.lowSpeedTime", "1")

    def stops(handler: Handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"001e# service=git-upload-pack\n")
        handler.rfile.read(1)  # until it has left
        return True

    server.answer = stops
    with pytest.raises(GitFailed, match="too slow"):
        reader.install(place, NAME)


def test_what_is_no_repository_is_said(server: GitServer, reader: Reader) -> None:
    with pytest.raises(SkillRefused, match="not found"):
        reader.install(server.address("absent.git"), NAME)
