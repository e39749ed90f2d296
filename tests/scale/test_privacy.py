"""What models do not see, of sessions on nodes: the border is in this process, values are there."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from tests.border import test_privacy_border
from tests.border.test_privacy_border import Office
from tests.scale import nodes
from tests.scale.taking_over import taken_from
from tests.session import test_told_columns


@pytest.fixture(scope="module")
async def bell(
    two_nodes: list[nodes.RunningNode],
    office: Office,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        addresses = [node.address for node in two_nodes]
        async with nodes.front(*addresses, privacy="personal", tools=office.tools()) as bell:
            yield bell


for _module in (test_privacy_border, test_told_columns):
    globals().update(taken_from(_module))
