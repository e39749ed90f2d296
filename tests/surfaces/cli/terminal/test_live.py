"""The live part of the screen."""

from divingbell.surfaces.cli.terminal.live import Live


def test_only_the_lines_that_are_live_are_drawn_again() -> None:
    written: list[str] = []
    live = Live(written.append)
    live.draw(["one"], rows=24)
    live.draw(["one"], rows=24)  # nothing has changed
    live.draw(["one", "two"], rows=24)
    live.settle(["one", "two", "three"])
    live.draw(["next"], rows=24)
    assert written == [
        "one",
        "\r\x1b[Jone\ntwo",
        "\r\x1b[1A\x1b[Jone\ntwo\nthree\n",
        "next",
    ]


def test_what_is_higher_than_the_screen_shows_its_end_until_it_is_settled() -> None:
    written: list[str] = []
    live = Live(written.append)
    lines = [f"{number}" for number in range(100)]
    live.draw(lines, rows=10)
    assert written == ["\n".join(lines[-9:])]
    live.settle(lines)
    assert written[1] == "\r\x1b[8A\x1b[J" + "".join(f"{line}\n" for line in lines)
