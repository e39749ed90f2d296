"""Catalogues for tests: real folders, and real git repositories."""

import os
import subprocess
from pathlib import Path

from divingbell.host.signing_key import SigningKey
from divingbell.models import Limits
from divingbell.review.reviewer import Reviewer
from divingbell.settings.review import ReviewSettings
from divingbell.skills.catalogue import Catalogue, open_catalogue
from divingbell.skills.installing import Installer, Proposal
from divingbell.skills.publishing import Published, publish
from divingbell.skills.record import Kept
from divingbell.skills.seen import Seen
from divingbell.skills.skill import Skill
from divingbell.skills.store import Stores

OURS, THEIRS = SigningKey(b"o" * 32), SigningKey(b"t" * 32)


def git(folder: Path, *arguments: str) -> str:
    """Run git as its users do, without this machine's settings."""
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(
        ["git", *identity, "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def repository(folder: Path) -> str:
    """Make a bare repository; return its address."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare")
    return f"file://{folder}"


def clone(address: str, folder: Path) -> Path:
    """Check a repository out, to change it by hand."""
    git(folder.parent, "clone", "--quiet", address, str(folder))
    return folder


def commit_all(work: Path, *, amend: bool = False) -> None:
    """Commit and push all that is in a checkout."""
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "-m", "by hand", *(["--amend"] if amend else []))
    git(work, "push", "--quiet", "--force", "origin", "HEAD:main")


class Reader:
    """Somebody who installs skills, with a folder of their own."""

    def __init__(self, data: Path, review: ReviewSettings | None = None) -> None:
        self.data = data
        self.seen = Seen(data)
        self.store = Stores(data / "skills").of("")
        reviewer = Reviewer(review or ReviewSettings())
        self.installer = Installer(self.store, self.seen, reviewer, Limits())

    def catalogue(self, place: str) -> Catalogue:
        return open_catalogue(place, self.data)

    def propose(self, place: str, name: str, *, key: str = "", digest: str = "") -> Proposal:
        catalogue = self.catalogue(place)
        with catalogue.reading():
            return self.installer.propose(catalogue, name, key=key, digest=digest)

    def install(self, place: str, name: str, *, key: str = "") -> Kept:
        return self.keep(self.propose(place, name, key=key))

    def keep(self, proposal: Proposal) -> Kept:
        return self.store.save(proposal.skill, self.installer.agree(proposal))

    def publish(self, skill: Skill, place: str, key: SigningKey = OURS) -> Published:
        return publish(skill, self.catalogue(place), key, self.seen)
