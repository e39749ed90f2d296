"""Tokens in code that runs on a node: the values are known here, and are there for that cell."""

from tests.scale.taking_over import taken_from
from tests.session import test_tokens_in_code

globals().update(taken_from(test_tokens_in_code))
