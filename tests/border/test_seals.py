"""Fields behind the border of the sandbox: only what stands below them is sealed."""

import base64
import json
import re
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from divingbell.border.privacy import learner
from divingbell.border.privacy.choosing import KINDS_OF, make_scanner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.seals import Seals
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.vault import opening
from divingbell.border.vault.tokens import TOKEN
from divingbell.errors import ToolFailed
from divingbell.principal import Principal
from divingbell.settings.privacy import Privacy, PrivacyRules
from divingbell.settings.vault import VaultSettings

ANN = Principal("ann", "one")
LIST = "bank.list_accounts"
ACCOUNTS = {
    "accounts": [
        {"id": 17, "owner": "Ann Leeson", "mail": "a.leeson@harbour.example.org", "pin": 42},
        {"id": 18, "owner": {"first_name": "Bobby", "age": 77.5, "vip": True}, "mail": None},
    ],
    "summary": "Ann Leeson has one account",
}


class Maker:
    """Makes borders, and closes their vaults."""

    def __init__(self) -> None:
        self._vaults: list[Any] = []

    async def __call__(
        self, border: Mapping[str, Any], privacy: Privacy = "personal"
    ) -> PrivacyBorder:
        rules = PrivacyRules(border=border)
        vaults = await opening.opened_in_memory(VaultSettings())
        self._vaults.append(vaults)
        kinds = KINDS_OF[privacy]
        scanner = make_scanner(privacy, rules)
        return PrivacyBorder(vaults, scanner, kinds, Fields({}, kinds), rules)

    async def close(self) -> None:
        for vaults in self._vaults:
            await vaults.close()


@pytest.fixture
async def make() -> AsyncIterator[Maker]:
    maker = Maker()
    yield maker
    await maker.close()


def wire(structured: Any = None, *texts: str) -> dict[str, Any]:
    found: dict[str, Any] = {"content": [{"type": "text", "text": text} for text in texts]}
    return found if structured is None else {"structured": structured, **found}


async def entered(border: PrivacyBorder, value: Any, tool: str = LIST) -> Any:
    return await border.outward(value, ANN, "sandbox", tool)


async def back(border: PrivacyBorder, value: Any) -> Any:
    return await border.inward(value, ANN, "bank")


def kind(token: Any) -> str:
    found = TOKEN.fullmatch(token)
    assert found, token
    return found[1]


async def test_what_stands_below_a_field_is_sealed_and_all_else_is_real(make: Maker) -> None:
    border = await make({f"{LIST}.owner": "sandbox"})
    found = (await entered(border, wire(ACCOUNTS)))["structured"]
    first, second = found["accounts"]
    assert first == ACCOUNTS["accounts"][0] | {"owner": first["owner"]}  # type: ignore[operator, index]
    assert kind(first["owner"]) == "VALUE" and kind(second["owner"]["first_name"]) == "NAME"
    assert kind(second["owner"]["age"]) == "VALUE" and second["owner"]["vip"] is True
    assert found["summary"] == f"{first['owner']} has one account"
    assert await back(border, first["owner"]) == "Ann Leeson"
    assert await back(border, second["owner"]["age"]) == "77.5"
    assert await border.values_in(repr(found), ANN) == {}


async def test_numbers_and_short_values_are_sealed_wherever_they_stand(make: Maker) -> None:
    border = await make({f"{LIST}.pin": "sandbox"})
    text = f"Found:\n{json.dumps(ACCOUNTS)}\nthat is all"
    found = await entered(border, wire(None, text))
    before, inner, after = found["content"][0]["text"].split("\n")
    read = json.loads(inner)
    assert (before, after) == ("Found:", "that is all")
    assert kind(read["accounts"][0]["pin"]) == "VALUE" and read["accounts"][0]["id"] == 17
    assert read["accounts"][1] == ACCOUNTS["accounts"][1]  # type: ignore[index]
    assert (await entered(border, wire({"pin": 7})))["structured"]["pin"] != 7


@pytest.mark.parametrize(
    "text",
    [
        "id,owner,city\n1,Quentin Oyelaran,Oslo\n",
        "<table><tr><th>id</th><th>owner</th></tr><tr><td>1</td><td>Quentin Oyelaran</td></tr>"
        "</table>",
        '{"columns": ["id", "owner"], "rows": [[1, "Quentin Oyelaran"]]}',
        '{"name": "owner", "value": "Quentin Oyelaran"}',
        '{"text": "{\\"owner\\": \\"Quentin Oyelaran\\"}"}',
        '{"a": 1}\n{"owner": ["Quentin Oyelaran"]}\n',
    ],
)
async def test_tables_pairs_and_json_in_texts_have_fields_too(make: Maker, text: str) -> None:
    border = await make({f"{LIST}.owner": "sandbox"})
    found = (await entered(border, wire(None, text)))["content"][0]["text"]
    assert "Quentin" not in found and "[VALUE_" in found
    assert "Quentin Oyelaran" in await back(border, found)


@pytest.mark.parametrize(
    ("pattern", "is_sealed"),
    [
        (f"{LIST}.accounts.owner", True),
        ("bank.*.owner", True),
        (f"{LIST}.owner.first_name", True),
        (f"{LIST}.accounts", True),
        (f"{LIST}.structured", False),
        ("bank.get.owner", False),
        ("crm.*", False),
    ],
)
async def test_a_field_is_a_name_or_the_whole_way_to_it(
    make: Maker, pattern: str, is_sealed: bool
) -> None:
    border = await make({pattern: "sandbox"})
    value = {
        "accounts": [{"owner": {"first_name": "Bobbington", "owner.first_name": "Bobbington"}}]
    }
    if pattern.endswith(".owner.first_name"):
        value = {"owner": {"first_name": "Bobbington"}}  # type: ignore[dict-item]
    found = await entered(border, wire(value))
    assert ("Bobbington" not in str(found)) is is_sealed


async def test_what_the_protocol_puts_around_a_result_is_no_field(make: Maker) -> None:
    border = await make({"bank.*.type": "sandbox", "bank.*.text": "sandbox"})
    found = await entered(border, wire({"type": "savings"}, '{"type": "checking"}'))
    assert found["content"][0]["type"] == "text"
    assert kind(found["structured"]["type"]) == "VALUE"
    assert "checking" not in found["content"][0]["text"]


async def test_a_field_may_be_left_out_of_a_sealed_tool(make: Maker) -> None:
    border = await make({f"{LIST}.mail": "model", "bank.*": "sandbox"})
    row = {"mail": "open@harbour.example.org", "backup_email": "shut@harbour.example.org"}
    found = (await entered(border, wire(row)))["structured"]
    assert found["mail"] == row["mail"] and kind(found["backup_email"]) == "EMAIL"
    both = {"mail": "both@harbour.example.org", "email": "both@harbour.example.org"}
    found = (await entered(border, wire(both)))["structured"]
    assert kind(found["mail"]) == kind(found["email"]) == "EMAIL"


async def test_the_first_line_that_is_about_a_value_decides(make: Maker) -> None:
    border = await make({"bank.*": "model", f"{LIST}.owner": "sandbox"})
    found = await entered(border, wire(ACCOUNTS))
    assert found == wire(ACCOUNTS)
    border = await make({f"{LIST}.first_name": "model", f"{LIST}.owner": "sandbox"})
    found = (await entered(border, wire(ACCOUNTS)))["structured"]["accounts"]
    assert found[1]["owner"]["first_name"] == "Bobby" and kind(found[0]["owner"]) == "VALUE"


async def test_a_sealed_value_stays_sealed_where_another_tool_sends_it_back(make: Maker) -> None:
    border = await make({f"{LIST}.owner": "sandbox"})
    await entered(border, wire(ACCOUNTS))
    echoed = await entered(border, wire(None, "for ANN LEESON and Bob"), "mail.send")
    text = echoed["content"][0]["text"]
    assert text.endswith(" and Bob") and "LEESON" not in text
    [value] = await border.restored(text, ANN)
    assert value.origins == {LIST, "mail.send"}
    assert "Leeson" not in await border.outward("Ann Leeson", ANN)


async def test_with_secrets_a_field_is_sealed_all_the_same(make: Maker) -> None:
    border = await make({f"{LIST}.mail": "sandbox"}, "secrets")
    found = (await entered(border, wire(ACCOUNTS)))["structured"]["accounts"][0]
    assert kind(found["mail"]) == "VALUE" and found["owner"] == "Ann Leeson"
    assert (await border.inward(found["mail"], ANN, "bank")).startswith("a.leeson@")


async def test_a_result_that_can_not_be_read_whole_is_kept_from_code(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    border = await make({f"{LIST}.owner": "sandbox"})
    monkeypatch.setattr(learner, "MOST_PARTS", 20)
    with pytest.raises(ToolFailed, match=r"is kept from the code.*ask for less at a time"):
        await entered(border, wire([{"owner": str(number)} for number in range(20)]))
    other = wire([{"owner": str(number)} for number in range(20)])
    assert await entered(border, other, "crm.list") == other


async def test_a_large_result_is_read_in_a_thread_and_its_work_grows_with_it(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    border = await make({f"{LIST}.owner": "sandbox"})
    compared: list[str] = []
    threads: list[str] = []
    first = Seals._first

    def counted(self: Seals, name: str) -> Any:
        compared.append(name)
        threads.append(threading.current_thread().name)
        return first(self, name)

    monkeypatch.setattr(Seals, "_first", counted)
    rows = [{"owner": f"Person Number{number:06}", "note": "x" * 80} for number in range(8_000)]
    found = (await entered(border, wire(rows)))["structured"]
    assert all(TOKEN.fullmatch(row["owner"]) for row in found)
    assert sorted(compared) == ["note", "owner"], "once for each name"
    assert threading.main_thread().name not in threads
    some = {row["owner"]: [row["owner"]] for row in found[:100]}
    assert await back(border, some) == {row["owner"]: [row["owner"]] for row in rows[:100]}


@pytest.mark.parametrize("is_by_field", [True, False])
async def test_files_that_are_text_are_read_though_they_come_as_base64(
    make: Maker, is_by_field: bool
) -> None:
    border = await make({"bank.*.owner" if is_by_field else "bank.*": "sandbox"})
    table = "owner,id\nz.oyelaran@harbour.example.org,1\n"
    blob = {"uri": "a://b", "blob": base64.b64encode(table.encode()).decode()}
    image = {"type": "image", "data": base64.b64encode(b"\x89PNG\xff").decode(), "mimeType": "x"}
    result = {"content": [{"type": "resource", "resource": blob}, image]}
    found = await entered(border, result)
    read = base64.b64decode(found["content"][0]["resource"]["blob"]).decode()
    assert "harbour" not in read and read.startswith("owner,id\n[EMAIL_")
    assert found["content"][1] == image
    for around in ([blob], [{"contents": [blob]}], [result]):
        assert blob["blob"] not in str(await entered(border, around, "bank.read_resource"))


async def test_what_words_beside_it_made_known_is_sealed_without_them_too(make: Maker) -> None:
    border = await make({"bank.*": "sandbox"})
    text = "password: Wq7#longer-than-most\nand once more Wq7#longer-than-most alone"
    found = (await entered(border, wire(None, text)))["content"][0]["text"]
    assert "longer-than-most" not in found


async def test_a_file_of_json_has_fields_too(make: Maker) -> None:
    border = await make({"bank.*.pin": "sandbox"})
    blob = {"uri": "a://b", "blob": base64.b64encode(b'{"pin": 42, "n": 7}').decode()}
    [found] = await entered(border, [blob], "bank.read_resource")
    read = json.loads(base64.b64decode(found["blob"]))
    assert kind(read["pin"]) == "VALUE" and read["n"] == 7


def _in_base64(text: str, encoding: str) -> dict[str, Any]:
    return {"resource": {"uri": "x://y", "blob": base64.b64encode(text.encode(encoding)).decode()}}


@pytest.mark.parametrize(
    "written",
    [
        "\ufeff" + json.dumps(ACCOUNTS),
        "\ufeff\n" + json.dumps(ACCOUNTS["accounts"]),
        json.dumps({"inner": "\ufeff" + json.dumps(ACCOUNTS)}),
        _in_base64(json.dumps(ACCOUNTS), "utf-8-sig"),
        "\ufeffowner,pin\nAnn Leeson,42\n",
        _in_base64("owner,pin\nAnn Leeson,42\n", "utf-8-sig"),
    ],
)
async def test_a_mark_at_the_beginning_of_json_or_a_table_hides_no_field(
    make: Maker, written: Any
) -> None:
    border = await make({"bank.*.owner": "sandbox"}, "secrets")
    content = written if isinstance(written, dict) else {"type": "text", "text": written}
    shown = await border.outward({"content": [content]}, ANN, "sandbox", LIST)
    text = json.dumps(shown)
    for blob in re.findall(r'"blob": "([^"]+)"', text):
        text += base64.b64decode(blob).decode()
    assert "Leeson" not in text and "[VALUE_" in text


@pytest.mark.parametrize("form", ["text", "blob"])
async def test_names_are_learned_from_json_after_such_a_mark(make: Maker, form: str) -> None:
    border = await make({})
    row = json.dumps([{"last_name": "Sayrefitz"}])
    content = {"text": f"\ufeff{row}"} if form == "text" else _in_base64(row, "utf-8-sig")
    await border.outward({"content": [content]}, ANN, "sandbox", LIST)
    assert "Sayrefitz" not in border.text("for Sayrefitz", ANN)
