"""What skills cost: `./dev bench skills`.

The import of a skill in a warm session beside that of the same file from /workspace, in turns; a
search among 1,000 skills; and what the recording of calls costs, for examples. Rows with a target
say whether it was met.
"""

import contextlib
import statistics
import time
from collections.abc import AsyncIterator

import apart
import bells
import table
from runner import Amount, Benchmark

from divingbell import Divingbell, Session
from divingbell.host import places
from divingbell.journal.events import CallEnded
from divingbell.principal import Principal
from divingbell.skills import skill_file
from divingbell.skills.record import Record
from divingbell.skills.recordings import Recordings
from divingbell.skills.search import SkillSearch
from divingbell.skills.skill import Skill
from divingbell.skills.store import FOLDER_NAME, Stores

MOST_IMPORT, MOST_SEARCH = 3.0, 5.0
EACH = 10
"""Imports of one kind in a row: of a turn the median counts."""
SKILLS = 1_000
USER = "bench"
_PART = '''
def part_{0}(rows, limit=3):
    """Return the rows with the largest sums."""
    ordered = sorted(rows, key=lambda row: -row["sum"])
    return [json.dumps(row) for row in ordered[:limit] if row["sum"] > {0}]
'''
CODE = (
    "import json\n"
    + "".join(_PART.format(number) for number in range(8))
    + '\ndef report(rows=()):\n    """Return a report."""\n    return part_1(rows)\n'
)
_TURN = f"""
import importlib, time
from divingbell_inside import skills as _skills
def _taken(name):
    started = time.perf_counter()
    importlib.import_module(name)
    return time.perf_counter() - started
def _skill():
    _skills.forget()
    return _taken("skills.report")
def _file(number):
    with open(f"/workspace/report_{{number}}.py", "w") as file:
        file.write(code)
    importlib.invalidate_caches()
    return _taken(f"report_{{number}}")
[[_skill() for _ in range({EACH})], [_file(turn * {EACH} + each) for each in range({EACH})]]
"""
_WORDS = ("customers orders revenue month", "invoices paid late", "flights delay carrier",
          "tickets open priority team", "sensor readings outliers", "contracts expiry renewal",
          "stock levels warehouse reorder", "errors logs service release")  # fmt: skip


@contextlib.asynccontextmanager
async def _session() -> AsyncIterator[tuple[Divingbell, Session]]:
    async with bells.ring(pool=0, skills="on") as bell, bell.session(user=USER) as session:
        yield bell, session


async def imports(rounds: int) -> list[table.Row]:
    """A skill and a file, turn by turn, in one session."""
    skill, file = list[float](), list[float]()
    async with _session() as (_, session):
        saved = await session.run(
            "save_skill('report', code, 'Makes a report')", context={"code": CODE}
        )
        assert saved.status == "ok", saved.error
        for turn in range(rounds + 1):
            result = await session.run(_TURN, context={"code": CODE, "turn": turn})
            assert result.status == "ok", result.error
            if turn:  # the first has warmed it up
                skill.append(statistics.median(result.value[0]))
                file.append(statistics.median(result.value[1]))
    ratio = statistics.median(one / other for one, other in zip(skill, file, strict=True))
    target = table.at_most(ratio, MOST_IMPORT, "×")
    measure = f"import of {len(CODE) / 1000:.1f} kB, in a warm session"
    return [
        table.times(measure, "a skill", skill, ratio=f"{ratio:.2f}×", target=target),
        table.times(measure, "the same from /workspace", file, ratio="1"),
    ]


async def searches(rounds: int) -> list[table.Row]:
    """Searches among many skills, by the host; the first makes the index."""
    store = Stores(places.data_folder() / FOLDER_NAME).of("many")
    store.save_all([(_described(number), Record("added")) for number in range(SKILLS)])
    search = SkillSearch(store)
    await search.find("warm")
    taken = list[float]()
    for turn in range(rounds * len(_WORDS)):
        started = time.perf_counter()
        found = await search.find(_WORDS[turn % len(_WORDS)], 10)
        taken.append(time.perf_counter() - started)
        assert len(found) == 10
    target = table.at_most(1000 * statistics.median(taken), MOST_SEARCH, " ms")
    return [table.times(f"a search among {SKILLS:,} skills", "by words", taken, target=target)]


def _described(number: int) -> Skill:
    words = f"{_WORDS[number % len(_WORDS)]} number {number}. Use it for {number % 97}."
    return skill_file.make(f"skill-{number}", f"Reports {words}")


async def recording(rounds: int) -> list[table.Row]:
    """The work for each call of a session, so that examples can be tried with its result."""
    taken = list[float]()
    for _ in range(rounds):
        kept = Recordings()
        events = [_ended(number) for number in range(1_000)]
        started = time.perf_counter()
        for event in events:
            kept.take(event)
        taken.append((time.perf_counter() - started) / len(events))
    return [table.times("each call, kept for examples", "recording", taken)]


def _ended(number: int) -> CallEnded:
    raw, body = b'{"number":%d}' % number, b"x" * 2_000
    who = (Principal(USER), "key", 1)
    return CallEnded(
        number, *who, "code", "tool", "crm.find", "ok", "", True, {}, raw, None, body, 0.0
    )


BENCHMARK = Benchmark(
    "skills",
    __doc__,
    parts={
        "imports": lambda chosen: imports(chosen.rounds),
        "searches": lambda chosen: searches(chosen.rounds),
        "recording": lambda chosen: recording(chosen.rounds),
    },
    amounts={"rounds": Amount("turns of each", 30, 3)},
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
