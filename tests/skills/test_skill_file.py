"""SKILL.md: read, written, and refused where it is none."""

import string
from pathlib import Path

import pytest
import skills_ref
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.errors import SkillRefused
from divingbell.skills import folder, names, skill_file
from tests.skills.samples import made

HEAD = "---\nname: top-customers\ndescription: Finds them.\n"
BAD_NAMES = [
    "../../x", "/etc/x", "a\0b", ".", "..", "a/b", "", "a" * 65, "x" * 300, "Top", "a_b", "-a",
    "a-", "a--b", "a\n", "ä", "os", "json", "email", "skills", "servers", "con\u202e",
]  # fmt: skip
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co", "Zl", "Zp"]),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_or_hides_a_module_is_refused(name: str) -> None:
    with pytest.raises(SkillRefused, match=r"can't be"):
        skill_file.make(name, "Does it.")


@pytest.mark.parametrize("name", ["top-customers", "a", "3d-plot", "class", "x1-2", "a" * 64])
def test_modules_lead_back_to_their_skills(name: str) -> None:
    assert names.module(name).isidentifier()
    assert names.of_module(names.module(name)) == names.of_module(name) == name


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    skill = skill_file.make(
        "top-customers",
        "Finds: the 'best' # customers",
        "# How\n\nCall it.",
        {"scripts/top_customers.py": b"x = 1\n", "references/a b.md": b"\xff"},
        license="MIT",
        compatibility="Needs pandas",
        allowed_tools=("shop.orders", "Bash(git add:*)"),
        metadata={"version": "1.0", "when": "2026-01-01", "yes": "no"},
    )
    assert skill == folder.read(folder.write(skill, tmp_path))
    assert skill.allowed_tools == ("shop.orders", "Bash(git add:*)")
    assert skill.metadata == {"version": "1.0", "when": "2026-01-01", "yes": "no"}
    assert (skill.body, skill.code) == ("# How\n\nCall it.\n", "x = 1\n")
    assert skills_ref.validate(tmp_path / skill.name) == []


@settings(max_examples=200, deadline=None)
@given(description=texts, license=texts, metadata=st.dictionaries(texts, texts, max_size=3))
def test_the_reference_reads_what_we_write(
    description: str,
    license: str,
    metadata: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    try:
        skill = skill_file.make("a", description, license=license, metadata=metadata)
    except SkillRefused:
        assert "---" in repr((description, license, metadata)) or not description.strip()
        return
    written = folder.write(skill, tmp_path_factory.mktemp("skills"))
    assert skills_ref.validate(written) == []
    read = skills_ref.read_properties(written)
    assert (read.description, read.metadata or {}) == (skill.description, skill.metadata)
    assert skill.description == description.strip()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("a: &a [x]\nb: *a", "anchors"),
        ("metadata: !!python/object:os.system {}", "tags"),
        ("metadata: " + "[" * 5_000, "nested"),
        ("name: again", "twice"),
        ("hooks: x", "does not know"),
        ("metadata: {a: [b]}", "must be texts"),
        ("metadata: {a: [b", "no YAML"),
        ("license: [a]", "must be a text"),
        ("compatibility: " + "x" * 501, "may have 500"),
        ("license: " + "x" * 20_000, "may have 16,384"),
        ("allowed-tools: {a: b}", "text or a list"),
    ],
)
def test_a_head_that_is_no_plain_table_is_refused(head: str, said: str) -> None:
    with pytest.raises(SkillRefused, match=said):
        skill_file.parse(f"{HEAD}{head}\n---\n".encode(), {})


def test_a_bomb_of_aliases_is_refused_before_anything_is_built() -> None:
    rows = ["a0: &a0 [lol, lol]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(SkillRefused, match="aliases"):
        skill_file.parse((HEAD + "\n".join(rows) + "\n---\n").encode(), {})


@pytest.mark.parametrize(
    "raw",
    [b"", b"# no head", b"---\nname: a\n", b"---\n- a\n---\n", b"---\n---\n", b"\xff\xfe",
     b"---\nname: a\n---\n", b"---\nname: a\ndescription: ''\n---\n",
     HEAD.encode() + b"---\n" + b"x" * 600_000],
)  # fmt: skip
def test_what_is_no_skill_file_is_refused(raw: bytes) -> None:
    with pytest.raises(SkillRefused):
        skill_file.parse(raw, {})


@pytest.mark.parametrize(
    "path",
    ["../x", "/x", "a//b", "a/../b", ".", "", "a\0", "a\\b", "x" * 256, "a/b/c/d/e/f/g/h/i",
     "skill.md", ".git/config", "a/__pycache__/b.pyc", "a\ud800"],
)  # fmt: skip
def test_a_file_that_would_be_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(SkillRefused):
        skill_file.make("a", "Does it.", files={path: b""})


@pytest.mark.parametrize("paths", [("a", "a/b"), ("A", "a"), ("x/Y/z", "X/y")])
def test_files_in_each_other_s_way_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(SkillRefused):
        skill_file.make("a", "Does it.", files=dict.fromkeys(paths, b""))


def test_a_skill_of_another_agent_keeps_its_own_fields() -> None:
    raw = (
        b"---\r\nname: pdf\r\ndescription: >\r\n  Reads\r\n  PDFs.\r\nmodel: opus\r\n"
        b"allowed-tools: Read, Bash(git:*)\r\nmetadata:\r\n  a: 1.0\r\n  b: [1]\r\n---\r\n# Hi\r\n"
    )
    skill = skill_file.parse(raw, {}, foreign=True)
    assert (skill.skill_md, skill.description, skill.metadata) == (raw, "Reads PDFs.", {"a": "1.0"})
    assert (skill.allowed_tools, skill.body) == (("Read", "Bash(git:*)"), "# Hi\r\n")


def test_every_byte_counts_for_the_digest() -> None:
    digests = {
        made().digest,
        made(code="def run():\n    return 2\n").digest,
        made("other").digest,
        skill_file.make("a", string.ascii_letters, files={"ab": b"c"}).digest,
        skill_file.make("a", string.ascii_letters, files={"a": b"bc"}).digest,
        skill_file.make("a", string.ascii_letters, files={"a": b"", "b": b"c"}).digest,
    }
    assert len(digests) == 6
    assert made().digest == made().digest


@given(
    head=st.one_of(
        st.text(max_size=200),
        st.lists(
            st.sampled_from(
                ["name: a\n", "description: b\n", "metadata:\n", "  ", "- ", "? ", ": ", "&a ",
                 "*a", "!!map ", "{", "[", "}", "]", ",", "|\n", ">-\n", "'", '"', "\t", "\n",
                 "<<: ", "%YAML 1.1\n", "--- ", "...\n", "\x85", "\ufeff", "~", "allowed-tools: "]
            ),
            max_size=30,
        ).map("".join),
    )
)  # fmt: skip
def test_whatever_the_head_is_it_is_read_or_refused(head: str) -> None:
    raw = f"---\n{head}\n---\nbody\n".encode("utf-8", "surrogatepass")
    for foreign in (False, True):
        try:
            skill = skill_file.parse(raw, {}, foreign=foreign)
        except SkillRefused:
            continue
        assert skill.skill_md == raw
        assert all(isinstance(each, str) for each in (skill.description, *skill.metadata.values()))
