"""Tables whose values are shown in ways that nobody can read as one are told to the border."""

import json
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.border.border import OpenBorder
from divingbell.border.privacy import learner
from divingbell.border.privacy.choosing import KINDS_OF, make_scanner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.vault import opening
from divingbell.principal import Principal
from divingbell.session import told_columns
from divingbell.session.told_columns import ToldColumns
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.vault import VaultSettings

ANN = Principal("ann", "first")
TABLE = """
import sys
import pandas as pd
df = pd.DataFrame({
    "id": [1, 2], "first_name": ["Annabel", "Ophelia"], "n": [3, 4], "team": ["Alfalfa", "Birch"],
    "last_name": ["Sayrefitz", "Quimbleton"], "phone": [5551234567.0, None],
})
"""
SHOWN = """
def shown():
    print(df.values)
"""
NAMES = ("Annabel", "Ophelia", "Sayrefitz", "Quimbleton", "5551234567")
WAYS = (
    "df.groupby(['last_name', 'first_name']).n.sum()",
    "print(df.groupby(['last_name', 'first_name']).n.sum())",
    "df.pivot(columns='last_name', index='id')['n']",
    "df.set_index(['last_name', 'first_name']).index",
    "df.values",
    "df.values.tolist()",
    "list(df.itertuples())",
    "[tuple(row) for row in df.itertuples(index=False)]",
    "print(df.to_csv(index=False))",
    "print(df.values)",
    "display(df.values)",
    "print(df.values, file=sys.stderr)",
    "raise ValueError(df.values.tolist())",
    "'; '.join(df.last_name)",
    "df['first_name'] = ['Annabel', 'Ophelia'][::-1]; df.values",
    "shown()",
)


@pytest.fixture(scope="module")
async def bell(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(privacy="personal", preload=["pandas"]) as bell:
            yield bell


@pytest.mark.parametrize("way", WAYS)
async def test_names_that_only_a_table_of_the_code_knows_are_hidden(
    bell: Divingbell, way: str
) -> None:
    for first, code in (("", TABLE + SHOWN + way), (TABLE + SHOWN, way)):
        async with bell.session() as session:
            if first:
                await session.run(first)
            seen = ""
            async for event in session.stream(code):
                seen += event.text or "".join(str(each.data) for each in event.outputs)
                if event.result is not None:
                    seen += f"{event.result.text}{event.result.value!r}{event.result.error!r}"
            assert "[" in seen
            assert [name for name in NAMES if name in seen] == []
            assert "Alfalfa" in seen or "values" not in way, "nothing else is hidden"


async def test_a_table_that_does_anything_disturbs_nothing(bell: Divingbell) -> None:
    hostile = """
import pandas as pd
class Odd(pd.DataFrame):
    @property
    def index(self):
        print("looked at")
        raise SystemError("no")
odd = Odd({"first_name": ["Annabel"]})
fine = pd.DataFrame({"last_name": ["Sayrefitz"]})
print(fine.values)
1 + 1
"""
    async with bell.session() as session:
        result = await session.run(hostile)
    assert result.status == "ok" and result.value == 2
    assert "Sayrefitz" not in result.text


async def test_odd_classes_and_numbers_disturb_no_output(bell: Divingbell) -> None:
    odd = """
import pandas as pd
class Odd:
    pass
Odd.__module__ = None
odd, many = Odd(), pd.DataFrame({"phone": [10 ** 5000], "last_name": ["Sayrefitz"]})
print("fine", many.last_name.tolist())
1 + 1
"""
    async with bell.session() as session:
        result = await session.run(odd)
    assert result.status == "ok" and result.value == 2
    assert "fine" in result.text and "Sayrefitz" not in result.text


async def test_what_the_host_does_not_hear_any_more_in_a_cell_does_not_count_as_told(
    bell: Divingbell,
) -> None:
    async with bell.session() as session:
        await session.run("import pandas as pd\nletters = 'abcdefghij'")
        await session.run(
            "for n in range(100):\n"
            "    name = 'Say' + letters[n // 10] + letters[n % 10] + 'fitz'\n"
            "    df = pd.DataFrame({'last_name': [name]})\n"
            "    print(n)"
        )
        result = await session.run("print(df.values.tolist())")
    assert "Sayjjfitz" not in result.text and "[NAME_" in result.text


async def test_nothing_is_asked_for_where_nothing_personal_is_hidden() -> None:
    charged: list[float] = []
    told = ToldColumns(OpenBorder(), lambda: ANN, charged.append)
    told.add(b'{"first_name": ["Annabel"]}')
    await told.learn()
    assert not told.wanted and not charged


@pytest.fixture
async def border() -> AsyncIterator[PrivacyBorder]:
    vaults = await opening.opened_in_memory(VaultSettings())
    kinds, rules = KINDS_OF["personal"], PrivacyRules()
    yield PrivacyBorder(vaults, make_scanner("personal", rules), kinds, Fields({}, kinds), rules)
    await vaults.close()


async def test_what_a_session_tells_is_learned_within_limits_and_charged(
    border: PrivacyBorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told_columns, "MOST", 2)
    monkeypatch.setattr(told_columns, "MOST_BYTES", 100)
    charged: list[float] = []
    told = ToldColumns(border, lambda: ANN, charged.append)
    for name in ("Annabel", "Ophelia", "Laertes"):
        told.add(json.dumps({"first_name": [name]}).encode())
    await told.learn()
    shown = await border.outward("Annabel, Ophelia and Laertes", ANN)
    assert "Annabel" not in shown and "Ophelia" not in shown and "Laertes" in shown
    assert len(charged) == 2
    told.begin_cell()
    told.add(b"x" * 101)
    told.add(json.dumps({"first_name": ["Laertes"]}).encode())
    await told.learn()
    assert "Laertes" in await border.outward("Laertes", ANN), "there was too much of it"
    told.begin_cell()
    told.add(json.dumps({"first_name": ["Laertes"]}).encode())
    await told.learn()
    assert "Laertes" not in await border.outward("Laertes", ANN)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"first_name": ' + b"[" * 60_000 + b"]" * 60_000 + b"}",
        b'{"first_name": NaN}',
        b'{"first_name": "\\ud800"}',
        b"[1, 2]",
        b'{"first_name": {"last_name": {}}}',
        b'{"first_name": [1e400]}',
        b'{"first_name": [' + b"[]," * 100_000 + b"[]]}",
    ],
)
def test_hostile_words_about_tables_teach_nothing(told: bytes) -> None:
    learned = Learned()
    assert Learner(Fields(), learned).learn_told(told).learned == 0
    assert not len(learned)


def test_what_is_told_takes_no_room_of_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_TOLD", 2)
    taught = Learner(Fields({"shown.table.team": "NAME"}), Learned())
    lesson = taught.learn_told(
        json.dumps({"first_name": ["Annabel", "Ophelia", "Laertes"]}).encode()
    )
    assert (lesson.learned, lesson.refused) == (2, 1)
    assert taught.learn_shown([{"first_name": "Laertes"}]).learned == 1
    assert taught.newly_missed() == [learner.TOLD]
