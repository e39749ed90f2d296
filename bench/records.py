"""What it costs to record, review and remember, all in one run: `./dev bench records`.

A call with the audit log and without it, one after the other and a hundred at once; the review of a
cell; the import of a skill, and a search among 1,000. Rows with a target say whether it was met.
`./dev bench audit` also kills processes while they write.
"""

import apart
from reviewing import reviewing
from runner import Amount, Benchmark

import audit
import skills

BENCHMARK = Benchmark(
    "records",
    __doc__,
    parts={
        "calls": lambda chosen: audit.calls(chosen.rounds),
        "gather": lambda chosen: audit.gathered(chosen.rounds),
        "review": lambda chosen: reviewing(chosen.rounds),
        "imports": lambda chosen: skills.imports(chosen.rounds),
        "searches": lambda chosen: skills.searches(chosen.rounds),
    },
    amounts={"rounds": Amount("turns of each", 40, 2)},
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
