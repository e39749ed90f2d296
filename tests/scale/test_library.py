"""What sessions of the library promise, on nodes: the same tests, with a front in front of two.

Left out are tests that look into the interpreter itself, which is in another process here.
"""

from tests.scale.taking_over import taken_from
from tests.session import (
    test_accidents,
    test_bad_input,
    test_cut_cells,
    test_data,
    test_downloads,
    test_engine,
    test_files,
    test_limits,
    test_loop_guard,
    test_notebook,
    test_options,
    test_session,
    test_shown,
    test_value,
)
from tests.session.commands import test_commands

for _module in (
    *(test_accidents, test_bad_input, test_commands, test_cut_cells, test_data, test_downloads),
    *(test_engine, test_files, test_limits, test_loop_guard, test_notebook, test_options),
    *(test_session, test_shown, test_value),
):
    globals().update(taken_from(_module))
