"""The blotter: no value of any kind is left in what is written to logs."""

import pytest

from divingbell.border.privacy import blotter, engines
from divingbell.border.privacy.blotter import BLOTTER, Blotter
from tests.border.privacy.samples import FOUND, NOT_FOUND, marked

SAMPLES = [(kind, *marked(sample)) for kind, samples in FOUND.items() for sample in samples]
PATIENCE = 60.0


@pytest.fixture(scope="module")
def made() -> Blotter:
    BLOTTER.make().join(PATIENCE)
    assert BLOTTER.is_made
    return BLOTTER


@pytest.mark.parametrize(("kind", "text", "value"), SAMPLES)
def test_the_name_of_its_kind_stands_for_a_value(
    kind: str, text: str, value: str, made: Blotter
) -> None:
    shown = made.blotted(text)
    assert value not in shown
    assert f"[{kind}]" in shown


@pytest.mark.parametrize(("kind", "text", "value"), SAMPLES)
def test_a_value_is_left_out_before_it_can_be_searched_for(
    kind: str, text: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unready, asked = Blotter(), []
    monkeypatch.setattr(unready, "make", lambda: asked.append(1))
    shown = unready.blotted(text)
    assert value not in shown
    assert "[…]" in shown
    assert asked


def test_a_text_without_values_is_as_it_was(made: Blotter) -> None:
    for text in NOT_FOUND:
        assert made.blotted(text) == text


def test_plain_words_need_no_search() -> None:
    unready = Blotter()
    assert unready.blotted("session 3 of nobody opened, 12 ms") == (
        "session 3 of nobody opened, 12 ms"
    )
    assert not unready.is_made


def test_it_is_made_once_and_tells_all_who_wait() -> None:
    fresh, told = Blotter(), []
    threads = {fresh.make(lambda turn=turn: told.append(turn)) for turn in range(3)}
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(told) == [0, 1, 2]
    assert fresh.blotted("to ann@example.org") == "to [EMAIL]"


def test_without_the_packages_a_line_that_could_have_a_value_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "ENGINES", ())
    engines.engine.cache_clear()
    without = Blotter()
    without.make().join(PATIENCE)
    shown = without.blotted("to ann@example.org")
    assert "ann" not in shown
    assert "pip install hyperscan" in shown
    assert without.blotted("a server has ended") == "a server has ended"


def test_a_long_text_is_cut_and_says_so(made: Blotter) -> None:
    shown = made.blotted("x " * blotter.LONGEST)
    assert shown.endswith(f"[left out: {blotter.LONGEST:,} characters]")


def test_a_text_that_takes_too_long_is_left_out(made: Blotter) -> None:
    shown = made.blotted("ann@example.org " * 2000, seconds=0.0)
    assert shown == "[left out: 32,000 characters with too much to search]"
