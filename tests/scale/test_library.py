"""What sessions of the library promise, on nodes: the same tests, with a front in front of two.

Left out are tests that look into the interpreter itself, which is in another process here.
"""

from tests.scale.taking_over import taken_from
from tests.session import (
    test_downloads,
    test_files,
    test_inputs,
    test_needs,
    test_notebook,
    test_session,
    test_shown,
    test_tail,
    test_transcript,
    test_value,
)
from tests.session.commands import test_commands

for _module in (
    *(test_commands, test_downloads, test_files, test_inputs, test_needs),
    *(test_notebook, test_session, test_shown, test_tail, test_transcript, test_value),
):
    globals().update(taken_from(_module))
