"""The tables of SECURITY.md and docs/backends.md, written from the promises.

python -m divingbell.promises.tables --write|--check [FOLDER]
"""

import sys
from collections.abc import Callable
from pathlib import Path

from divingbell.promises.promise import GROUPS, KEPT, PROMISES, Promise
from divingbell.sandbox import registry

BEGIN, END = "<!-- promises:begin -->", "<!-- promises:end -->"
_KINDS = {
    "probe": "code inside, judged by itself",
    "bomb": "code inside, judged by its result",
    "host": "driven from outside",
    "browser": "tried by the tests in Chromium",
}
_WITHOUT_CGROUPS = "where there are no control groups"
_WITHOUT_OWN_UID = "where an ordinary user has started it"


def security_table() -> str:
    """Every promise: the attack, the safe outcome, how it is checked."""
    parts = []
    for group, title in GROUPS.items():
        parts += [f"### {title}", "", "| id | attack | what happens | check |"]
        parts += ["| --- | --- | --- | --- |"]
        parts += [
            f"| {promise.id} | {_cell(promise.attack)} | {_cell(promise.expected)} "
            f"| {_KINDS[promise.kind] if promise.kept_by(registry.DEFAULT) else 'not yet'} |"
            for promise in PROMISES
            if promise.group == group
        ]
        parts.append("")
    return "\n".join(parts)


def backends_table() -> str:
    """How many promises of each group a backend keeps, and each one that it does not."""
    backends = [row.name for row in registry.OURS]
    parts = [f"| promises | {' | '.join(backends)} |", f"| --- |{' --- |' * len(backends)}"]
    for group, title in GROUPS.items():
        rows = [each for each in PROMISES if each.group == group and each.about_sessions]
        if not rows:
            continue
        cells = [_count(rows, backend) for backend in backends]
        parts.append(f"| {title} | {' | '.join(cells)} |")
    for backend in backends:
        parts += ["", f"Not promised by {backend}:", ""]
        parts += [f"- {line}" for line in _not_promised(backend)]
    return "\n".join([*parts, ""])


def _not_promised(backend: str) -> list[str]:
    """One line for each promise that is not made."""
    lines = [
        f"{promise.id}, {promise.attack}: {promise.backends[backend]}."
        for promise in PROMISES
        if not promise.kept_by(backend)
    ]
    row = registry.find(backend)
    lines += [
        f"{promise.id}, {promise.attack}, {where}: {reason}."
        for promise in PROMISES
        for applies, where, reason in (
            (row.works_without_cgroups, _WITHOUT_CGROUPS, promise.without_cgroups),
            (not row.sessions_have_own_uids, _WITHOUT_OWN_UID, promise.without_own_uid),
        )
        if applies and reason and promise.kept_by(backend)
    ]
    return lines


def _count(rows: list[Promise], backend: str) -> str:
    kept = sum(promise.kept_by(backend) for promise in rows)
    reasons = {promise.backends[backend] for promise in rows} - {KEPT}
    if kept == 0 and len(reasons) == 1:
        return reasons.pop()
    return f"all {kept}" if kept == len(rows) else f"{kept} of {len(rows)}"


def _cell(text: str) -> str:
    """Text that means itself in a cell of a Markdown table."""
    for mark in "\\|*_<`":
        text = text.replace(mark, f"\\{mark}")
    return text


PAGES: dict[str, Callable[[], str]] = {
    "SECURITY.md": security_table,
    "docs/backends.md": backends_table,
}


def renewed(text: str, table: str) -> str:
    """Return the page with the table between its markers.

    Raises:
        ValueError: the markers are not there.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def main(arguments: list[str]) -> int:
    write = arguments[:1] == ["--write"]
    if not write and arguments[:1] != ["--check"]:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[1]) if len(arguments) > 1 else Path.cwd()
    stale = []
    for name, table in PAGES.items():
        text = (folder / name).read_text("utf-8")
        current = renewed(text, table())
        if current != text:
            stale.append(name)
            if write:
                (folder / name).write_text(current, "utf-8")
    for name in stale:
        print(f"{name} {'was written' if write else 'is stale: run it with --write'}")
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
