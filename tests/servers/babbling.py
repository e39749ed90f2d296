"""A server that talks on its standard output between its messages; with a number, too much."""

import sys

import rough

print("Welcome to the babbling server!")
print("{not json")
print('{"jsonrpc": "2.0", "neither": "request nor answer"}')


def call(_: object) -> object:
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print("DEBUG I was called")
    return rough.text("done")


rough.serve({"tools/call": call})
