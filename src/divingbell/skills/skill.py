"""A skill: instructions and code in the Agent Skills format, as it is, whole and checked."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from divingbell.skills import names

SCRIPTS = "scripts"


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill. `skill_file.make` and `skill_file.parse` make one; both check it."""

    name: str
    """Such as `top-customers`."""
    description: str
    """What it does, and when to use it."""
    skill_md: bytes = field(repr=False)
    """SKILL.md, to the byte: those of others are kept as they were written."""
    body: str = field(default="", repr=False)
    """The Markdown after the head of SKILL.md."""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """All files but SKILL.md, by their paths below the folder."""

    @property
    def module(self) -> str:
        """The module that it is imported as, such as `top_customers`."""
        return names.module(self.name)

    @property
    def script(self) -> str:
        """The path of the code that is imported, whether it is there or not."""
        return script(self.name)

    @property
    def code(self) -> str | None:
        """The code that is imported; None for a skill without, or of which it is no text."""
        try:
            return self.files[self.script].decode()
        except (KeyError, UnicodeDecodeError):
            return None

    @property
    def all_files(self) -> dict[str, bytes]:
        """Every file with SKILL.md, in the order of their paths."""
        return dict(sorted({names.SKILL_FILE: self.skill_md, **self.files}.items()))

    @property
    def digest(self) -> str:
        """`sha256:` and the hash of all files: of their paths, their lengths and their bytes."""
        return digest(self.all_files)


def script(name: str) -> str:
    """Return the path of the code that is imported as the skill of this name."""
    return f"{SCRIPTS}/{names.module(name)}.py"


def digest(files: Mapping[str, bytes]) -> str:
    """Return `sha256:` and the hash of files.

    Lengths come first, so that no two sets of files are written as the same bytes.
    """
    hashed = hashlib.sha256(b"divingbell skill 1\n")
    for path, data in sorted(files.items()):
        name = path.encode()
        hashed.update(b"%d %d\n" % (len(name), len(data)))
        hashed.update(name)
        hashed.update(data)
    return f"sha256:{hashed.hexdigest()}"
