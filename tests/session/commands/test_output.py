"""The output of a command: its start, its end, and all of it for a file."""

import hypothesis
from hypothesis import strategies

from divingbell.session.commands.output import StreamName, StreamOutput


class Kept:
    def __init__(self) -> None:
        self.data = b""

    def __call__(self, name: StreamName, data: bytes) -> None:
        assert name == "stdout"
        self.data += data


@hypothesis.given(strategies.lists(strategies.text(alphabet="aä€😀\n", max_size=60), max_size=30))
def test_nothing_is_lost_wherever_the_pipe_is_cut(texts: list[str]) -> None:
    whole, kept = "".join(texts), Kept()
    raw = whole.encode()
    stream = StreamOutput("stdout", 64, kept)
    shown = ""
    for start in range(0, len(raw), 7):
        stream.add(raw[start : start + 7])
        shown += stream.take_shown()
    shown += stream.finish()
    assert stream.bytes == len(raw) and shown == stream.text
    assert "�" not in shown
    if stream.cut:
        assert kept.data == raw
        start, _, end = shown.partition("\n[… ")
        assert whole.startswith(start) and whole.endswith(end.partition(" …]\n")[2])
        assert len(shown.encode()) < 64 + 60
    else:
        assert shown == whole and not kept.data
