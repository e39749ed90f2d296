"""Pictures of a session at the terminal: saved, or shown where the terminal can."""

import base64
from pathlib import Path

import pytest

from divingbell.models import Output
from divingbell.surfaces.cli.terminal import pictures
from tests.surfaces.cli.command import PNG


def test_a_flood_of_images_is_stemmed(tmp_path: Path) -> None:
    album = pictures.Album(tmp_path)
    saved = [album.save(Output("image/png", PNG)) for _ in range(pictures.MAX_PICTURES + 5)]
    assert saved[-1] is None
    assert len(list(tmp_path.iterdir())) == pictures.MAX_PICTURES


def test_a_display_that_is_updated_keeps_its_file(tmp_path: Path) -> None:
    album = pictures.Album(tmp_path)
    first = album.save(Output("image/png", PNG + b"1"), "chart")
    assert album.save(Output("image/png", PNG + b"2"), "chart") == first
    assert first is not None and first.read_bytes() == PNG + b"2"


@pytest.mark.parametrize(
    ("variables", "protocol"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM_PROGRAM": "vscode"}, "iterm"),
        ({"KITTY_WINDOW_ID": "1", "TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty", "TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"KONSOLE_VERSION": "230803", "TERM": "xterm-256color"}, "kitty"),
        ({"KONSOLE_VERSION": "210401", "TERM": "xterm-256color"}, None),
        ({"TERM_PROGRAM": "ghostty", "TMUX": "/tmp/tmux"}, None),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "xterm"}, None),
    ],
)
def test_terminals_that_show_images_are_known(
    variables: dict[str, str], protocol: str | None
) -> None:
    assert pictures.protocol_of(variables) == protocol


def test_images_are_sent_in_the_form_of_the_terminal() -> None:
    data = PNG + bytes(5000)
    encoded = base64.b64encode(data).decode()
    assert pictures.inline(data, "iterm") == (
        f"\x1b]1337;File=inline=1;size={len(data)}:{encoded}\a\n"
    )
    assert pictures.inline(data, "kitty") == (
        f"\x1b_Ga=T,f=100,q=2,m=1;{encoded[:4096]}\x1b\\\x1b_Gm=0;{encoded[4096:]}\x1b\\\n"
    )
    assert pictures.inline(b"\x1b]0;not an image\a", "iterm") == ""
