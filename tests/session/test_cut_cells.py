"""Learned values are found in tables as pandas prints them, where long cells are cut."""

import pytest

from divingbell import Session
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen

PEOPLE = [
    {
        "full_name": "Alexandra Wilhelmina Leeson van der Harbour-Castlereagh",
        "email": "alexandra.wilhelmina.leeson.van.der.harbour@castlereagh.example.org",
        "street": "Hafenstrasse 1234, third floor on the left, Warnemuende",
    },
    {
        "full_name": "Bartholomew Ignatius Okoye-Featherstonehaugh the Elder",
        "email": "bartholomew@featherstonehaugh-and-sons-shipbuilders.example.org",
        "street": "Featherstone Crescent 98765, behind the lighthouse\nTynemouth",
    },
]
SAID = ("alexan", "wilhel", "leeson", "harbour", "castle", "hafen", "floor", "barthol", "ignat",
        "okoye", "feather", "sons", "crescent", "lighth", "warne")  # fmt: skip
SHOWN = {
    "printed": "print(frame)",
    "shown": "frame",
    "narrow": "pd.set_option('display.max_colwidth', 16); print(frame)",
    "one column": "frame['full_name']",
    "one row": "frame.iloc[0]",
    "text": "print(frame.to_string(max_colwidth=24))",
}


@pytest.mark.parametrize("way", SHOWN)
async def test_no_part_of_a_value_is_left_in_a_table(session: Session, way: str) -> None:
    known = Learned()
    Learner(Fields(), known).learn({"result": PEOPLE}, "crm.find")
    screen = Screen(Scanner(KINDS), known)
    # What pandas has by itself; sessions show more.
    begin = "import pandas as pd; pd.set_option('display.max_colwidth', 50)"
    code = f"{begin}\nframe = pd.DataFrame({PEOPLE!r})\n{SHOWN[way]}"
    text = (await session.run(code)).text
    assert "..." in text
    left = text
    for find in reversed(screen.finds(text)):
        left = f"{left[: find.start]}[{find.kind}]{left[find.end :]}"
    assert [word for word in SAID if word in left.lower()] == [], left


async def test_what_a_shown_table_holds_is_learned_by_its_columns(session: Session) -> None:
    result = await session.run(f"import pandas as pd\npd.DataFrame({PEOPLE!r})[['full_name']]")
    [page] = [output.data for output in result.outputs if output.type == "text/html"]
    known = Learned()
    assert Learner(Fields(), known).learn(page, "session.shown").learned == 2
    assert len(known.finds(result.text)) == 2
