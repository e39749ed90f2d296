"""What is written of events: no personal value, no secret, and never too much."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from divingbell.audit import screening
from divingbell.audit.records import LONG_CODE
from divingbell.border.privacy.choosing import KINDS_OF, make_scanner
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.vault import opening
from divingbell.journal.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallDecided,
    CellEnded,
    CellRefused,
    CellStarted,
    CommandStarted,
    ExecutionRefused,
    Revealed,
    SessionOpened,
    SignedIn,
    SignInFailed,
    SkillRemoved,
    SkillSaved,
    SkillUsed,
)
from divingbell.models import Failure, Result
from divingbell.principal import Principal
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.vault import VaultSettings
from tests.audit import making

EMAIL, CARD, TOKEN = (
    "bob.miller@example.org",
    "4111 1111 1111 1111",
    "ghp_" + "x7Kq2LmN9pRs4TvW8yZb3CdF6gHj1kM5nPqR",
)
BOB = Principal(EMAIL, f"talk of {EMAIL}", "http")


async def _written(folder: Path, *events: Any, **settings: Any) -> str:
    async with making.writing(folder, **settings) as log:
        for event in events:
            log.note(event)
    return "".join(path.read_text() for path in making.files(folder))


async def test_no_value_of_any_event_is_written(tmp_path: Path) -> None:
    said = f"for {EMAIL}, card {CARD}, token {TOKEN}"
    key = f"{EMAIL}/a#1"
    text = await _written(
        tmp_path,
        SessionOpened(BOB, said, key),
        CellStarted(BOB, key, 1, f"x = '{said}'"),
        CellEnded(BOB, key, 1, said, Result("error", error=Failure(f"E{EMAIL}", said))),
        CellRefused(BOB, key, 2, said, said),
        ExecutionRefused(BOB, key, "cell", said, 1.0),
        ExecutionRefused(BOB, key, "command", said, 1.0),
        CommandStarted(BOB, key, 1, f"echo '{said}'"),
        CallDecided(1, "shop.refund", "deny", 3, said),
        making.ended(1, "denied", was_sent=False, arguments={EMAIL: said, "n": 4111111111111111}),
        making.sent(2, who=BOB, to=[{"mail": EMAIL, "note": said}]),
        ApprovalAsked(1, "shop.refund", EMAIL, key, 1, said),
        ApprovalAnswered(1, "shop.refund", EMAIL, key, 1, "no", said),
        SignedIn(BOB, f"server-of-{EMAIL}"),
        SignInFailed(BOB, f"server-of-{EMAIL}", said),
        Revealed(BOB, 3, "program"),
        SkillSaved(BOB, said, 1, "sha256:0", "session", key, 1),
        SkillUsed(BOB, said, 1, key, 2),
        SkillRemoved(BOB, said, 1),
    )
    for value in (EMAIL, "bob.miller", CARD, CARD.replace(" ", ""), TOKEN):
        assert value not in text
    assert len(making.records(tmp_path)) == 19
    assert "[EMAIL]" in text and "[CARD]" in text


async def test_a_user_with_a_personal_name_can_still_be_told_from_others(tmp_path: Path) -> None:
    others = Principal("carol@example.org", "b")
    await _written(tmp_path, *[SessionOpened(who, "s", "k") for who in (BOB, others, BOB)])
    users = [each["user"] for each in making.records(tmp_path) if "user" in each]
    assert users[0] == users[2] != users[1] and users[0].startswith("[EMAIL] ")


async def test_a_long_text_is_cut_and_known_by_its_hash(tmp_path: Path) -> None:
    code = "value = 1\n" * 5_000
    await _written(tmp_path, CellStarted(making.ANNA, "k", 1, code))
    [_, record, _] = making.records(tmp_path)
    assert len(record["code"]["text"]) <= 16_001 and record["code"]["characters"] == len(code)
    assert record["code"]["sha256"] == hashlib.sha256(code.encode()).hexdigest()


@pytest.mark.parametrize("before", range(15_960, 16_010, 5))
async def test_no_half_of_a_value_is_left_where_a_text_is_cut(before: int, tmp_path: Path) -> None:
    code = "a " * (before // 2) + f"{EMAIL} {CARD} " * 5
    text = await _written(tmp_path, CellStarted(making.ANNA, "k", 1, code))
    assert "bob.mil" not in text and "4111" not in text


async def test_arguments_are_bounded_whatever_they_are(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    hostile = {
        "deep": deep,
        "many": list(range(100_000)),
        "names": {f"n{number}": number for number in range(10_000)},
        "long": "x" * 5_000_000,
        "number": 10**5000,
        "bytes": b"no JSON",
        "lone": "\ud800",
    }
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1, **hostile))
    [_, record, _] = making.records(tmp_path)
    assert len(json.dumps(record)) < 20_000


async def test_arguments_that_the_host_sets_are_not_written(tmp_path: Path) -> None:
    policy = {"bound": {"shop.*.api_password": "open sesame"}}
    async with making.writing(tmp_path, policy=policy) as log:
        await log.intend(making.sent(1, order=2, api_password="open sesame"))
    [_, record, _] = making.records(tmp_path)
    shown = json.loads(record["arguments"]["text"])
    assert shown == {"order": 2, "api_password": "[set by the host]"}


async def test_a_decision_is_written_with_its_rule(tmp_path: Path) -> None:
    await _written(
        tmp_path,
        CallDecided(1, "shop.refund", "deny", 3, "no refunds", flow=1, source="mail.read"),
        making.ended(1, "denied", was_sent=False),
    )
    [_, record, _] = making.records(tmp_path)
    assert record["outcome"] == "denied" and record["sent"] is False
    assert record["decision"] == {
        "action": "deny", "rule": 3, "reason": "no refunds", "flow": 1, "source": "mail.read"
    }  # fmt: skip


LEESON = (
    "crm.save(last_name='Leeson')",
    "save({'contact': {'lastName': 'Leeson', 'Street': 'Quai 17'}})",
    "name = 'Leeson'\nsave(surname=name)",
    "rows = [r for r in rows if r['last_name'] == 'Leeson']",
    "table = pd.DataFrame({'last_name': ['Leeson', 'Hall'], 'age': [1, 2]})",
    "def greet(last_name='Leeson'): print(last_name)",
    "people[people.last_name == 'Leeson']",
    "%time save(last_name='Leeson')",
    "!save --last-name Leeson --street 'Quai 17'",
    "import io\nread_csv(io.StringIO('id,last_name\\n1,Leeson\\n'))",
    'text = \'{"last_name": "Leeson"}\'',
    "print('again: Leeson')\nsave(last_name='Leeson')",
)


@pytest.mark.parametrize("code", LEESON)
async def test_a_name_that_code_writes_beside_its_field_is_not_written(
    tmp_path: Path, code: str
) -> None:
    text = await _written(tmp_path, CellStarted(making.ANNA, "key", 1, code))
    assert "eeson" not in text and "Quai" not in text and "[NAME]" in text


async def test_personal_fields_of_arguments_are_not_written(tmp_path: Path) -> None:
    row = {"last_name": "Leeson", "first_name": "Li", "street": "Quai 17", "city": "Oslo"}
    text = await _written(
        tmp_path,
        making.sent(1, contact=row, rows=[row], note=json.dumps(row), count=3),
        making.ended(2, "denied", was_sent=False, arguments={"lastName": "Hallworth"}),
        # What was an argument once is known in what comes later, at whatever place it stands.
        CellStarted(making.ANNA, "key", 2, "save('Leeson', 'Oslo')"),
        CommandStarted(making.ANNA, "key", 1, "grep Hallworth people.csv"),
    )
    for value in ("Leeson", '"Li"', 'Li\\"', "Quai", "Hallworth"):
        assert value not in text, value
    assert "Oslo" in text and "[NAME]" in text and "[ADDRESS]" in text


async def test_a_personal_field_of_which_the_border_knows_a_part_is_hidden_as_a_whole(
    tmp_path: Path,
) -> None:
    vaults = await opening.opened_in_memory(VaultSettings())
    kinds, rules = KINDS_OF["personal"], PrivacyRules()
    border = PrivacyBorder(vaults, make_scanner("personal", rules), kinds, Fields({}, kinds), rules)
    street = f"Quai 17 behind the mill, {EMAIL}"
    text = await _written(tmp_path, making.sent(1, street=street, email=EMAIL), border=border)
    await vaults.close()
    assert "Quai" not in text and "mill" not in text and EMAIL not in text
    assert "[ADDRESS]" in text and "[EMAIL_" in text, "what is whole can be revealed"


async def test_what_fills_the_room_for_names_is_not_written_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening, "MOST_LEARNED", 2)
    names = ("Leeson", "Marten", "Hallworth")
    code = "".join(f"save(last_name='{name}')\n" for name in names)
    row = {"last_name": "Sayrefitz", "street": "Quai 17", "first_name": "Ophelia"}
    text = await _written(
        tmp_path,
        CellStarted(making.ANNA, "key", 1, code),
        making.sent(1, who=Principal("bert", "two"), row=row, note=json.dumps(row)),
    )
    for value in (*names, *row.values()):
        assert value not in text, value


async def test_code_that_is_much_to_read_is_read_beside_the_event_loop(tmp_path: Path) -> None:
    code = "x=1\n" * (LONG_CODE // 4)
    async with making.writing(tmp_path) as log:
        records = log._records
        for event in (
            CellStarted(making.ANNA, "key", 1, code + "#"),
            CommandStarted(making.ANNA, "key", 1, code + "#"),
        ):
            assert records.is_long(event)
        assert not records.is_long(CellStarted(making.ANNA, "key", 2, code))


async def test_fields_that_the_settings_name_count_in_the_log(tmp_path: Path) -> None:
    rules = {"fields": {"shop.*.label": "person", "shop.*.street": "none"}}
    text = await _written(
        tmp_path,
        making.sent(1, label="Leeson", street="Quai 17"),
        CellStarted(making.ANNA, "key", 2, "from servers import shop\nshop.refund(label='Marten')"),
        CellStarted(making.ANNA, "key", 3, "from servers.shop import refund\nrefund(label='Olga')"),
        privacy_rules=rules,
    )
    assert "Quai 17" in text
    for value in ("Leeson", "Marten", "Olga"):
        assert value not in text, value


async def test_what_looks_like_a_field_and_is_none_stays_readable(tmp_path: Path) -> None:
    code = "email = True\nsave(phone=3, address='/etc/x', user_name='', title='Head of Sales')"
    await _written(tmp_path, CellStarted(making.ANNA, "key", 1, code))
    [record] = [each for each in making.records(tmp_path) if "code" in each]
    assert record["code"]["text"] == code
