"""What stands beside a cut of our own output is hidden: it may be half a value."""

from divingbell.border.privacy import cuts
from divingbell.border.privacy.kinds import PERSONAL, SECRETS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen

SCREEN = Screen(Scanner(SECRETS | PERSONAL), Learned())
WORDS = "\n[… 28,008 bytes left out; all of it is in /workspace/.outputs/cell-1.txt …]\n"
TAIL = "0343 6467 and " + "so it goes, " * 40


def shown(text: str) -> str:
    for find in reversed(cuts.with_cuts(text, SCREEN.finds(text), SCREEN)):
        text = text[: find.start] + cuts.SHOWN + text[find.end :]
    return text


def test_half_a_value_on_either_side_is_hidden_and_the_rest_stays() -> None:
    found = shown(f"the card is 4539 1488 03{WORDS}{TAIL}")
    assert found.startswith("the card …\n[… 28,008") and "4539" not in found
    assert "0343" not in found and found.endswith("so it goes, so it goes, ")


def test_what_has_passed_once_passes_again_unchanged() -> None:
    once = shown(f"the card is 4539 1488 03{WORDS}{TAIL}")
    assert shown(once) == once


def test_the_rest_of_a_private_key_is_hidden_to_its_end() -> None:
    key = "\n".join(["Yl5nP2sUe9DhGo6KfAiXtLwBVuMjHrNyCdSaEpOq"] * 20)
    found = shown(f"x{WORDS}{key}\n-----END PRIVATE KEY-----\nafter")
    assert "Yl5n" not in found and found.endswith("-----\nafter")


def test_in_pieces_nothing_is_shown_before_it_is_known_to_be_no_rest_of_a_value() -> None:
    screen = PieceScreen(SCREEN, lambda piece, kind: cuts.SHOWN, hides_cuts=True)
    fed = [screen.feed(piece) for piece in ("the card is 4539 1488 03", WORDS, "0343 ", TAIL)]
    assert "".join(fed[:3]) == "the card …"
    assert "034" not in "".join(fed) + screen.end()
