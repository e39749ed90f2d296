"""Tables in what a session shows are read, as pandas and polars write them."""

import pytest

from divingbell.border.privacy import learner, shown_tables
from divingbell.border.privacy.documents import html_tables_in
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner
from divingbell_inside.personal_names import usual_kind

FRAME = """\
   id first_name    email First Name
0   1    Annabel  a@x.org      Xaver
1   2      Bo Li  b@y.org      Zed Q
"""
WITHOUT_INDEX = """\
 id first_name   email First Name
  1    Annabel a@x.org      Xaver
  2      Bo Li b@y.org      Zed Q
"""
INDEXED = """\
            id
first_name    
Annabel      1
Bo Li        2
"""
WRAPPED = """\
  first_name  city  \\
0    Annabel  Oslo   
1      Bo Li  Rome   

       street  
0  Rue Lappe 1  
"""
SERIES = """\
0    Annabel
1      Bo Li
Name: first_name, dtype: str
"""
ROW = """\
id                  1
first_name    Annabel
last name       Bo Li
Name: 0, dtype: object
"""
COUNTS = """\
first_name
Annabel    1
Bo Li      1
Name: count, dtype: int64
"""
DRAWN = """\
shape: (2, 2)
┌────────────┬─────┐
│ first_name ┆ age │
│ ---        ┆ --- │
│ str        ┆ i64 │
╞════════════╪═════╡
│ Annabel    ┆ 1   │
│ Bo Li      ┆ 2   │
└────────────┴─────┘
"""
LISTED = """\
shape: (2,)
Series: 'first_name' [str]
[
	"Annabel"
	"Bo Li"
]
"""
TUPLES = "[Pandas(Index=0, first_name='Annabel', n=1), Person(id=2, last_name=\"Bo Li\")]"
CSV = """\
id,first_name,n
1,Annabel,2
2,"Bo Li",7
"""
CSV_WITH_INDEX = """\
;first_name;n
0;Annabel;2
1;Bo Li;7
"""
DICTS = """[{'id': 1, 'first_name': 'Annabel'}, {"id": 2, "last-name": "Bo Li"}]"""
POLARS_HTML = (
    "<table><thead><tr><th>first_name</th></tr><tr><td>str</td></tr></thead>"
    "<tbody><tr><td>&quot;Annabel&quot;</td></tr><tr><td>&quot;Bo Li&quot;</td></tr></tbody>"
    "</table>"
)
INDEXED_HTML = (
    "<table><thead><tr><th></th><th>id</th></tr><tr><th>first_name</th><th></th></tr></thead>"
    "<tbody><tr><th>Annabel</th><td>1</td></tr></tbody></table>"
)


def is_personal(name: str) -> bool:
    return bool(usual_kind(name))


def cells(text: str) -> list[str]:
    return [cell for _, cell in shown_tables.cells_in(text, is_personal)]


@pytest.mark.parametrize(
    "text",
    [
        *(FRAME, WITHOUT_INDEX, INDEXED, WRAPPED, SERIES, ROW, COUNTS, DRAWN, LISTED, DICTS),
        *(TUPLES, CSV, CSV_WITH_INDEX),
    ],
)
def test_the_cells_of_personal_columns_are_read(text: str) -> None:
    assert {"Annabel", "Bo Li"} <= set(cells(text))
    assert shown_tables.may_be_in(text)
    # What stands around a table changes nothing.
    assert {"Annabel", "Bo Li"} <= set(cells(f"Here it is:\n{text}\n  and so on\n{text}"))


def test_no_other_cells_are_read() -> None:
    assert set(cells(FRAME)) == {"Annabel", "Bo Li", "a@x.org", "b@y.org", "Xaver", "Zed Q"}
    for text in (INDEXED, SERIES, ROW, COUNTS, DRAWN, LISTED, DICTS, TUPLES, CSV, CSV_WITH_INDEX):
        assert set(cells(text)) == {"Annabel", "Bo Li"}, text


@pytest.mark.parametrize(
    "text",
    [
        "    first_name\n    raise ValueError(name)\n",
        "def send(\n    address,\n    subject\n):\n    ...\n",
        "Proto Local Address   Foreign Address\ntcp   0.0.0.0:22      0.0.0.0:*\n",
        "  email: one of those\n  phone: another one\n",
        "Name: first_name, dtype: str",
        "│ first_name │",
        "    first_name = 1\n    first_name = 2\n",
        "Write your first name, last name\nand so on",
        "def send(address='', subject=None):\n",
    ],
)
def test_texts_that_are_no_tables_have_no_cells(text: str) -> None:
    assert cells(text) == []


def test_headers_of_html_are_one_row() -> None:
    assert list(html_tables_in(POLARS_HTML)) == [[["first_name"], ["Annabel"], ["Bo Li"]]]
    assert list(html_tables_in(INDEXED_HTML)) == [[["first_name", "id"], ["Annabel", "1"]]]


def test_what_is_shown_may_fill_only_a_part_of_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_SHOWN", 3)
    learned = Learned()
    taught = Learner(Fields(), learned)
    rows = "".join(f"{number}    Person{number}\n" for number in range(9))
    lesson = taught.learn_shown([f"{rows}Name: first_name, dtype: str\n"])
    assert (lesson.learned, lesson.refused) == (3, 6)
    assert taught.learn({"first_name": "Ophelia"}, "crm.find").learned == 1


def test_settings_name_columns_of_what_is_shown() -> None:
    learned = Learned()
    taught = Learner(Fields({"shown.table.name": "NAME", "shown.*.email": ""}), learned)
    taught.learn_shown(["      name    email\n0  Laertes  o@x.org\n"])
    assert learned.finds("Laertes") and not learned.finds("o@x.org")


@pytest.mark.parametrize(
    "text",
    [
        (" first_name" * 150 + "\n") * 500,
        FRAME.partition("\n")[0] + "\n" + ("0" * 36 + "\n") * 20_000,
        (" " + ("a" * 77 + "= ") * 24 + "\n" + " " + ("b" * 77 + "= ") * 24 + "\n") * 250,
        SERIES * 10_000,
        DRAWN[:120] * 5_000,
        LISTED[:-2] * 10_000,
        " " * 1_000_000,
        "abc,def,first_name\n" * 20_000,
        ("a," * 60 + "\n") * 2_000,
        "first_name,x\n" + 'a,"' * 100_000,
        "a" * 200_000 + "=",
        "first_name='" * 50_000,
        ("a" + "    b" * 390 + "\n") * 500 + "dtype: int\n",
    ],
)
def test_hostile_tables_are_read_to_their_end(text: str) -> None:
    asked: list[str] = []

    def counted(name: str) -> bool:
        asked.append(name)
        return is_personal(name)

    read = sum(1 for _ in shown_tables.cells_in(text, counted))
    # In proportion to the text: a name or a cell has some characters of it for itself.
    assert read + len(asked) <= len(text) // 4
