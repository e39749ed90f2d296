"""The split of users into the arms of an experiment."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from divingbell import ConfigError
from divingbell.settings import config
from divingbell.settings.experiment import ORDER, ExperimentSettings, point_of

USERS = [f"user-{number}" for number in range(10_000)]


def read(tmp_path: Path, text: str) -> ExperimentSettings:
    file = tmp_path / "divingbell.toml"
    file.write_text(f"[experiment]\n{text}\n")
    return config.load(file, {}, {}).experiment


def test_users_fall_into_arms_by_their_shares(tmp_path: Path) -> None:
    found = read(tmp_path, "arms = {code = 25, direct = 75}")
    arms = [found.arm_of(user) for user in USERS]
    assert 0.23 < arms.count("code") / len(USERS) < 0.27
    assert arms.count("code") + arms.count("direct") == len(USERS)
    assert arms == [found.arm_of(user) for user in USERS]


def test_a_named_few_are_in_their_arm_whatever_the_shares_are(tmp_path: Path) -> None:
    text = 'arms = {code = 0, direct = 100}\nusers = {code = ["user-7"]}'
    found = read(tmp_path, text)
    assert found.arm_of("user-7") == "code"
    assert found.arm_of("user-8") == "direct"
    alone = read(tmp_path, 'users = {code = ["user-7"]}')
    assert alone.arm_of("user-7") == "code" and alone.arm_of("user-8") is None


def test_without_an_experiment_nobody_is_in_an_arm() -> None:
    assert not ExperimentSettings()
    assert ExperimentSettings().arm_of("user-7") is None


weights = some.lists(some.integers(1, 1_000), min_size=1, max_size=len(ORDER) - 1)
"""Of the arms besides `code`."""


def _experiment(code: float, others: list[int]) -> ExperimentSettings:
    """An experiment in which `code` has that share, and the others divide the rest."""
    arms = zip(ORDER[1:], others, strict=False)
    return ExperimentSettings(
        {"code": code, **{arm: (100 - code) * each / sum(others) for arm, each in arms}}
    )


@given(some.text(), some.floats(0, 100), some.floats(0, 100), weights, weights)
def test_nobody_leaves_code_when_its_share_grows(
    user: str, one: float, other: float, before: list[int], after: list[int]
) -> None:
    smaller, larger = sorted((one, other))
    if _experiment(smaller, before).arm_of(user) == "code":
        assert _experiment(larger, after).arm_of(user) == "code"


@given(some.text(), some.floats(0, 100), weights)
def test_everybody_is_in_an_arm_that_has_a_share(user: str, code: float, others: list[int]) -> None:
    experiment = _experiment(code, others)
    found = experiment.arm_of(user)
    assert found is not None and experiment.arms[found] > 0
    assert 0 <= point_of(user) < 100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arms = {code = 25, direct = 70}", "95 together, not 100"),
        ("arms = {code = 25, manual = 75}", "'manual' is no arm"),
        ("arms = {code = -5, direct = 105}", "from 0 to 100"),
        ('arms = {code = "all"}', "from 0 to 100"),
        ("arms = {code = true, direct = 99}", "from 0 to 100"),
        ("arms = 5", "must be a table"),
        ('users = {code = "user-7"}', "a list of names"),
        ('users = {code = ["a"], direct = ["a"]}', "'a' is in two arms"),
        ("share = 5", "no setting"),
    ],
)
def test_what_can_not_be_an_experiment_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, text)
