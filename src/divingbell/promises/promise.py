"""One promise: an attack, its safe outcome, and the backends that keep it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

HERE = Path(__file__).parent
PROBES = HERE / "probes"
PREAMBLE = PROBES / "preamble.py"
KEPT = "kept"

Kind = Literal["probe", "bomb", "host", "browser"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A row of the table."""

    id: str
    group: str
    attack: str
    """What hostile code tries, in one line."""
    expected: str
    """The safe outcome."""
    backends: Mapping[str, str]
    """For each backend "kept", or the reason why it is not promised."""
    kind: Kind
    """probe: runs inside and judges itself. bomb: runs inside, the result is judged. host: driven
    by a function of `divingbell.promises.check`. browser: about the console's page, tried by the
    tests in Chromium."""
    probe: str = ""
    """The file in `probes/` that runs inside; a host check may do without."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Of the session of a bomb, where they differ from those of all bombs."""
    outcomes: tuple[str, ...] = ()
    """Of a bomb: the statuses that are safe, as `limit:memory` or `killed`."""
    within: float = 0.0
    """Of a bomb: the seconds after which it must be over."""
    keeps_files: bool = True
    """Of a bomb: the files in /workspace must be there afterwards."""
    ways: tuple[str, ...] = ()
    """Of a browser: what is tried, by the names that the tests have for it."""
    without_cgroups: str = ""
    """Why it is not promised where there are only rlimits; empty: it is."""
    without_own_uid: str = ""
    """Why local does not promise it where sessions have the uid of their user; empty: it does."""

    def kept_by(self, backend: str) -> bool:
        return self.backends.get(backend) == KEPT

    @property
    def about_sessions(self) -> bool:
        """Whether a sandbox is enough to try it: no browser comes with Divingbell."""
        return self.kind != "browser"

    def source(self) -> str:
        """The code that runs inside."""
        return (PROBES / self.probe).read_text("utf-8")


def load(path: Path = HERE / "promises.toml") -> tuple[dict[str, str], tuple[Promise, ...]]:
    """Read the table: the title of each group, and the rows in order."""
    raw = tomllib.loads(path.read_text("utf-8"))
    defaults: dict[str, str] = raw["backends"]
    return raw["groups"], tuple(_promise(row, defaults) for row in raw["promise"])


def _promise(row: dict[str, Any], defaults: Mapping[str, str]) -> Promise:
    backends = MappingProxyType({**defaults, **row.pop("backends", {})})
    limits = MappingProxyType(row.pop("limits", {}))
    outcomes = tuple(row.pop("outcomes", ()))
    ways = tuple(row.pop("ways", ()))
    if row["kind"] in ("probe", "bomb"):
        row.setdefault("probe", f"{row['id']}.py")
    return Promise(**row, backends=backends, limits=limits, outcomes=outcomes, ways=ways)


GROUPS, PROMISES = load()
