"""Values of personal fields are learned from results and files, within limits that are said."""

import base64
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from divingbell.border.privacy import learned, learner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner, Lesson

ROWS = [
    {"id": 17, "first_name": "Ann", "last_name": "Leeson", "email": "ann@example.org"},
    {"id": 18, "first_name": "Robert", "last_name": "Okoye", "email": "bob@example.org"},
]
NAMES = {"Ann": "NAME", "Leeson": "NAME", "Robert": "NAME", "Okoye": "NAME"}
VALUES = NAMES | {"ann@example.org": "EMAIL", "bob@example.org": "EMAIL"}
HEADER = list(ROWS[0])
CELLS = [list(row.values()) for row in ROWS]
CSV = "\n".join(",".join(map(str, row)) for row in [HEADER, *CELLS])


def _cells(tag: str, row: list[Any]) -> str:
    return "".join(f"<{tag}><b>{cell}</b> </{tag}>" for cell in row)


RESULTS: dict[str, Any] = {
    "rows": {"customers": ROWS},
    "structured content": {"content": [], "structuredContent": {"result": ROWS}},
    "text of JSON": {"content": [{"type": "text", "text": json.dumps(ROWS)}]},
    "text of JSON after words": {"text": f"Found 2:\n{json.dumps(ROWS, indent=1)}"},
    "lines of JSON": "\n".join(map(json.dumps, ROWS)),
    "JSON in JSON": {"text": json.dumps({"body": json.dumps(ROWS)})},
    "columns and rows": {"columns": HEADER, "rows": CELLS},
    "columns that say more": {"fields": [{"name": name} for name in HEADER], "data": CELLS},
    "a list with a header": {"values": [HEADER, *CELLS]},
    "a resource in base64": {
        "content": [
            {
                "type": "resource",
                "resource": {
                    "uri": "file:///people",
                    "blob": base64.b64encode(json.dumps(ROWS).encode()).decode(),
                },
            }
        ]
    },
    "resources in base64": [
        {"uri": "file:///a", "blob": base64.b64encode(json.dumps(ROWS).encode()).decode()}
    ],
    "a text in base64": {"blob": base64.b64encode(json.dumps(ROWS).encode()).decode()},
    "CSV": {"content": [{"type": "text", "text": CSV}]},
    "HTML": f"<p>Found</p><table><tr>{_cells('th', HEADER)}</tr>"
    + "".join(f"<tr class='x'>{_cells('td', row)}</tr>" for row in CELLS),
    "lists by column": {name: [row[name] for row in ROWS] for name in HEADER},
    "dicts by column": {key: {"0": ROWS[0][key], "1": ROWS[1][key]} for key in HEADER},
    "names and values": [[{"name": key, "value": row[key]} for key in HEADER] for row in ROWS],
}  # fmt: skip


class Kept(Learned):
    """Remembers what it was told, and how often."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, str] = {}
        self.times = 0

    def add(self, values: Any) -> int:
        given = list(values)
        self.told |= dict(given)
        self.times += 1
        return super().add(given)


def taught(value: Any, fields: Fields | None = None, tool: str = "crm.find") -> dict[str, str]:
    known = Kept()
    lesson = Learner(fields or Fields(), known).learn(value, tool)
    assert (lesson.refused, lesson.problem) == (0, "")
    assert known.times == 1
    return known.told


@pytest.mark.parametrize("way", RESULTS)
def test_personal_fields_are_learned_however_a_result_has_them(way: str) -> None:
    assert taught(RESULTS[way]) == VALUES


def test_what_is_learned_is_found_again() -> None:
    known = Learned()
    assert Learner(Fields(), known).learn(ROWS, "crm.find") == Lesson(learned=6)
    text = "ANN LEESON and Okoye wrote to bob@example.org about order 17."
    assert [text[find.start : find.end] for find in known.finds(text)] == [
        "ANN", "LEESON", "Okoye", "bob@example.org",
    ]  # fmt: skip
    assert Learner(Fields(), known).learn(ROWS, "crm.find") == Lesson()


def test_each_leaf_below_a_personal_field_is_learned() -> None:
    value = {
        "address": {
            "id": "addr_19231", "type": "Residential", "lines": ["12 Main Street", "Flat 9b"],
            "city": "Oslo", "zip": 90210, "country": "Norway",
            "contact": {"phone": "+47 5551 2345"},
        },
        "emails": [{"value": "ann@example.org", "type": "home"}, "bob@example.org"],
    }  # fmt: skip
    assert taught(value) == {
        "12 Main Street": "ADDRESS", "Flat 9b": "ADDRESS", "Oslo": "ADDRESS", "90210": "ADDRESS",
        "+47 5551 2345": "PHONE", "ann@example.org": "EMAIL", "bob@example.org": "EMAIL",
    }  # fmt: skip


def test_of_a_value_that_was_cut_the_beginning_is_learned() -> None:
    value = {"street": "12 Long Harbour...", "full_name": "Alexandra Lee…"}
    assert taught(value) == {"12 Long Harbour": "ADDRESS", "Alexandra Lee": "NAME"}


def test_numbers_are_learned_as_they_are_written() -> None:
    value = {"phone": 5551234567, "mobile": 5551234568.0, "fax": True, "ssn": float("nan"),
             "tel": 10**5000, "iban": None}  # fmt: skip
    assert taught(value) == {"5551234567": "PHONE", "5551234568": "PHONE"}


@pytest.mark.parametrize(
    "value",
    [
        {"email": "weekly"},
        {"email": {"subject": "Your order", "body": "Write to us at any time"}},
        {"mobile": "yes", "phone": "n/a"},
        {"address": "0x7ffdc0de"},
        {"address": "https://example.org/"},
        {"name": "Rope", "title": "A rope", "city": "Oslo", "id": "190231"},
        {"password": "secret"},
        {"full_name": "x " * 100},
        "Please send name, email, phone\nto us, or, not",
    ],
)
def test_what_a_field_holds_must_be_able_to_be_of_its_kind(value: Any) -> None:
    assert taught(value) == {}


def test_a_mailbox_in_a_field_for_addresses_is_one() -> None:
    assert taught({"from_address": "ann@example.org"}) == {"ann@example.org": "EMAIL"}


def test_patterns_of_the_settings_are_believed() -> None:
    fields = Fields({"crm.*.name": "NAME", "crm.*.email": "NONE", "crm.find.note.by": "EMAIL"})
    value = {"list": [{"name": "Robert 2", "email": "a@x.org"}], "note": {"by": "robert"}}
    assert taught(value, fields) == {"Robert 2": "NAME", "robert": "EMAIL"}
    assert taught(value, fields, "shop.find") == {"a@x.org": "EMAIL"}


def test_a_million_fields_are_looked_at_up_to_a_number_and_the_first_are_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learner, "MOST_PARTS", 1000)
    known = Learned()
    rows = [{"email": f"a{number}@example.org"} for number in range(2000)]
    lesson = Learner(Fields(), known).learn(rows, "crm.find")
    assert lesson == Lesson(499, 0, "only the first 1,000 parts were looked at")
    assert known.finds("a0@example.org")
    assert not known.finds("a1999@example.org")


def test_what_is_nested_deeply_is_left_out_and_said() -> None:
    value: Any = {"email": "deep@example.org"}
    for _ in range(100_000):
        value = [value]
    known = Learned()
    lesson = Learner(Fields(), known).learn([{"email": "a@example.org"}, value], "crm.find")
    assert lesson == Lesson(1, 0, "what is nested too deeply was not looked at")


def test_texts_of_json_are_read_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_TEXT", 100)
    texts = [json.dumps({"email": f"a{number}@example.org"}) for number in range(9)]
    lesson = Learner(Fields(), Learned()).learn(texts, "crm.find")
    assert lesson == Lesson(3, 0, "there was more JSON in texts than is read")


def test_one_server_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_OF_SERVER", 3)
    teacher = Learner(Fields(), Learned())
    rows = [{"email": f"a{number}@example.org"} for number in range(5)]
    assert teacher.learn(rows, "evil.find") == Lesson(3, 2)
    assert teacher.learn(rows[4:], "evil.other") == Lesson(0, 1)
    assert teacher.learn(rows[4:], "crm.find") == Lesson(1)


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "MOST_VALUES", 2)
    assert Learner(Fields(), Learned()).learn(ROWS, "crm.find") == Lesson(2, 4)


FILES: dict[str, Callable[[], bytes]] = {
    "people.csv": lambda: CSV.encode(),
    "People.CSV": lambda: b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode(),
    "semicolons.txt": lambda: CSV.replace(",", ";").encode(),
    "people.tsv": lambda: CSV.replace(",", "\t").encode(),
    "utf-16.csv": lambda: CSV.encode("utf-16"),
    "people.json": lambda: json.dumps({"people": ROWS}, indent=2).encode(),
    "people.jsonl": lambda: "\n".join(map(json.dumps, ROWS)).encode(),
    "people.ndjson": lambda: "\n".join(map(json.dumps, ROWS)).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_learned_from(name: str) -> None:
    known = Kept()
    assert Learner(Fields(), known).learn_file(name, FILES[name]()) == Lesson(6)
    assert known.told == VALUES


def test_a_file_in_another_encoding_is_read() -> None:
    known = Learned()
    Learner(Fields(), known).learn_file("k.csv", "id;Nachname\n1;Müller".encode("cp1252"))
    assert known.finds("Frau Müller")


def test_patterns_name_files_too() -> None:
    known = Kept()
    fields = Fields({"files.people.csv.name": "NAME"})
    for name in ("people.csv", "products.csv"):
        Learner(fields, known).learn_file(name, f"id,name\n1,of {name}\n".encode())
    assert known.told == {"of people.csv": "NAME"}


@pytest.mark.parametrize("name", ["a.parquet", "a.xlsx", "a.pickle", "Makefile", "a." + "x" * 999])
def test_files_of_other_kinds_are_not_read(name: str) -> None:
    lesson = Learner(Fields(), Learned()).learn_file(name, b"email\na@example.org\n")
    assert lesson.learned == 0
    assert lesson.problem.startswith("nothing is learned from files that end in .")
    assert len(lesson.problem) < 100


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.csv", b"id,email\n1,a@x.org\n" + b"x" * 1_000_000, "a row of the table is too long"),
        ("a.csv", b'id,email\n1,a@x.org\n"' + b"\n" * 200_000, "the table can't be read further"),
        ("a.json", b'{"email": "a@x.org"}\n' + b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"email": "a@x.org"}\n[' + b"[]," * 999_999, "more values than are read"),
        ("a.jsonl", b'{"email": "a@x.org", "x": "%0200d"}\n' % 0 * 50_000, "only the first 8 MB"),
        ("a.csv", b"email\n" + b"a@x.org\n" * 300_000, "only the first 250,000 parts"),
    ],
)
def test_a_hostile_file_is_read_as_far_as_it_goes(name: str, data: bytes, problem: str) -> None:
    lesson = Learner(Fields(), Learned()).learn_file(name, data)
    assert lesson.learned == 1
    assert re.search(problem, lesson.problem)


@pytest.mark.parametrize("data", [b"", b"\x00" * 100, b"\xff\xfe\x00", b"\xff" * 100, b"[", b","])
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.txt"])
def test_a_file_that_is_none_teaches_nothing(name: str, data: bytes) -> None:
    assert Learner(Fields(), Learned()).learn_file(name, data).learned == 0


def test_arguments_take_no_room_of_the_results_of_their_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learner, "MOST_GIVEN", 1)
    monkeypatch.setattr(learner, "MOST_OF_SERVER", len(VALUES))
    teacher = Learner(Fields(), Learned())
    rows = [{"last_name": f"Givenname{number}"} for number in range(9)]
    given = teacher.learn_given({"rows": rows}, "crm.save")
    assert (given.learned, given.refused) == (1, 8)
    assert teacher.newly_missed() == [learner.GIVEN]
    found = teacher.learn({"customers": ROWS}, "crm.find")
    assert (found.learned, found.refused) == (len(VALUES), 0)


def test_threads_may_learn_at_once() -> None:
    known = Learned()
    teacher = Learner(Fields(), known)

    def learn(number: int) -> int:
        rows = [{"email": f"a{number}.{each}@example.org"} for each in range(20)]
        return teacher.learn(rows, f"server{number}.find").learned

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(learn, range(20))) == len(known) == 400


@pytest.mark.parametrize("written", ["1985-03-12 00:00:00", "1985-03-12T00:00:00.000Z"])
def test_a_day_of_birth_with_a_time_is_known_without_it(written: str) -> None:
    known = Learned()
    Learner(Fields(), known).learn([{"dob": written, "created": "2024-05-06 07:08:09"}], "crm.list")
    for text in (f"since {written} or so", "since 1985-03-12 or so"):
        assert [find.kind for find in known.finds(text)] == ["BIRTH_DATE"]
    assert known.finds("on 2024-05-06") == []


FLAT: dict[str, dict[str, Any]] = {
    "a field": {"id": 17, "email": "ann@example.org"},
    "a name beside its value": {"name": "email", "value": "ann@example.org"},
    "JSON": {"note": '{"email": "ann@example.org"}'},
    "CSV": {"note": "id,email\n17,ann@example.org"},
    "HTML": {"note": "<table><tr><th>email</th></tr><tr><td>ann@example.org</td></tr></table>"},
    "base64": {"blob": base64.b64encode(b'{"email": "ann@example.org"}').decode()},
}


@pytest.mark.parametrize("kind", FLAT)
def test_what_is_read_at_a_glance_is_learned_all_the_same(kind: str) -> None:
    for learn in (Learner.learn, Learner.learn_given):
        known = Learned()
        learn(Learner(Fields(), known), FLAT[kind], "crm.find")
        assert len(known) == 1
