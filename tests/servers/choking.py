"""A server that dies of a method that it does not know."""

import os

import rough


def choke(_: object) -> object:
    os._exit(7)


rough.serve({"server/discover": choke, "tools/call": lambda _: rough.text("alive")})
