"""Files of tokens: what they hold, and what is refused."""

from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.surfaces import auth

ANNE, BERT = "anne-has-a-long-token", "bert-has-a-long-token"


def _load(text: str, folder: Path) -> auth.Tokens | None:
    file = folder / "tokens"
    file.write_text(text)
    return auth.load(file, (), {})


def _user(known: auth.Tokens, token: str) -> str | None:
    grant = known.grant_of(token)
    return None if grant is None else grant.user


def test_a_token_is_known_by_itself_or_by_its_hash(tmp_path: Path) -> None:
    text = f"# who may call\n\nanne {ANNE}\nbert sha256:{auth.hash_of(BERT)}\n"
    known = _load(text, tmp_path)
    assert known is not None
    assert _user(known, ANNE) == "anne"
    assert _user(known, BERT) == "bert"
    for wrong in ("", ANNE[:-1], ANNE + "x", auth.hash_of(BERT), "ä\ud800"):
        assert known.grant_of(wrong) is None


def test_tokens_come_from_the_command_line_and_the_environment_too() -> None:
    known = auth.load(None, (f"anne={ANNE}",), {auth.VARIABLE: f"bert {BERT}, "})
    assert known is not None
    assert (_user(known, ANNE), _user(known, BERT)) == ("anne", "bert")


def test_no_token_anywhere_is_none() -> None:
    assert auth.load(None, (), {}) is None


@pytest.mark.parametrize(
    "text",
    ["", "# nobody", "anne", f"anne {ANNE} more", "anne short", "anne sha256:beef",
     f"../anne {ANNE}", f"anne {ANNE}\nanne {BERT}"],
    ids=repr,
)  # fmt: skip
def test_a_file_that_can_not_be_meant_is_refused_and_its_tokens_not_told(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        _load(text, tmp_path)
    assert ANNE not in str(raised.value) and "short" not in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        auth.load(tmp_path / "none", (), {})


def test_a_file_to_which_others_could_add_a_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"ann {'a' * 32}\n")
    file.chmod(0o606)
    with pytest.raises(ConfigError, match="another user could add tokens"):
        auth.load(file, (), {})
    file.chmod(0o604)
    assert auth.load(file, (), {}) is not None


def test_a_token_that_is_made_can_not_be_guessed() -> None:
    (_, one), (known, other) = auth.made(), auth.made()
    assert one != other and len(other) >= 32
    assert _user(known, other) == "local" and known.grant_of(one) is None
