"""The words of a command line: which are ours, and which belong to the script that it runs.

As with Python itself, all that stands after the name of the file is the script's own, also what
looks like an option of ours.
"""

from collections.abc import Sequence

FLAGS = frozenset({"--help", "-h", "--json", "--private", "--verbose", "-v"})
"""Options of `run` that take no value. After any other one comes its value."""
END_OF_OPTIONS = "--"
STDIN = "-"
RESUME = "--resume"
"""The option of `chat` whose value may be left out."""
READING_STDIN = (["review"], ["vault", "reveal"])
"""Other commands that take `-` for a file."""


def parted(words: Sequence[str]) -> list[str]:
    """Return the words with an end of our options before the file of `run`, or a lone `-`."""
    reads = any(list(words[: len(one)]) == one for one in READING_STDIN)
    if reads and STDIN in words and END_OF_OPTIONS not in words:
        return [*(word for word in words if word != STDIN), END_OF_OPTIONS, STDIN]
    if list(words[:1]) == ["chat"]:
        return _with_name(words)
    if list(words[:1]) != ["run"]:
        return list(words)
    file = _place_of_file(words)
    ours, scripts = words[:file], words[file:]
    return [*ours, END_OF_OPTIONS, *scripts] if scripts else list(ours)


def _with_name(words: Sequence[str]) -> list[str]:
    """Return the words of `chat` with an empty name after a `--resume` that has none."""
    made = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        made.append(word)
        if word == RESUME and (not after or after.startswith("-")):
            made.append("")
    return made


def _place_of_file(words: Sequence[str]) -> int:
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] != "-":
        word = words[place]
        if word == END_OF_OPTIONS:
            return len(words)  # it is there already
        has_value = "=" not in word and word not in FLAGS
        place += 2 if has_value else 1
    return place
