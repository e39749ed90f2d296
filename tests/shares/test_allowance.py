"""What is under way together takes no more than it may."""

from divingbell.shares.allowance import Allowance, Hold


def test_what_is_taken_is_given_back() -> None:
    allowance = Allowance(100)
    one, two = Hold(allowance), Hold(allowance)
    assert one.grow(60) and two.grow(40) and allowance.held == 100
    assert one.grow(50) and allowance.held == 100  # it has that already
    assert not two.grow(41) and allowance.held == 100
    one.close()
    one.close()
    assert two.grow(90) and allowance.held == 90
    two.close()
    assert two.grow(50) and allowance.held == 0  # too late to be counted


def test_who_is_alone_may_have_more_than_there_is() -> None:
    allowance = Allowance(100)
    one, two = Hold(allowance), Hold(allowance)
    assert one.grow(1000)
    assert not two.grow(1)
    one.close()
    assert two.grow(1)
