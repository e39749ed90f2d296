"""Packages: requirements are taken, and nothing that an installer reads as something else."""

import pytest

from divingbell.host.requirements import checked


def test_requirements_come_back_in_order_and_once() -> None:
    given = ["scikit-learn", " polars[all]>=1,<2 ", "scikit-learn", 'a; python_version > "3"']
    assert checked(given) == (
        'a; python_version > "3"',
        "polars[all]>=1,<2",
        "scikit-learn",
    )
    wheel = "a-1-py3-none-any.whl"
    for address in (f"https://host.example/{wheel}?a=b#sha256=00", f"file:///folder/{wheel}"):
        assert checked([f"a @ {address}"])


@pytest.mark.parametrize(
    "package",
    [
        "",
        "--index-url=https://evil.example",
        "--extra-index-url https://evil.example",
        "-r other.txt",
        "-e .",
        "./folder",
        "/abs/folder",
        "https://evil.example/a.whl",
        "a @ https://evil.example/a-1.tar.gz",
        "a @ git+https://evil.example/a",
        "a @ file:///folder",
        "a @ git+file:///folder@v.whl",
        "a @ git+ssh://git@evil.example/a.whl",
        "a @ git+https://evil.example/a@b.whl",
        "a @ hg+https://evil.example/a.whl",
        "a @ http://evil.example/a-1-py3-none-any.whl",
        "a @ https://evil.example/a.tar.gz?x=.whl",
        "a @ https://evil.example/a.tar.gz#x.whl",
        "a @ https://[evil.example/a.whl",
        "a @ folder/a.whl",
        "a b",
        "a\n--index-url=https://evil.example",
        "a\rb",
        "a --hash=sha256:00",
        "a \\",
        "a # b",
        "; rm",
        "$(id)",
    ],
)
def test_what_is_no_requirement_is_refused(package: str) -> None:
    with pytest.raises(ValueError, match="is not a requirement"):
        checked(["numpy", package])
