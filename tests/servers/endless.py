"""A server whose answer has 200 MB."""

import sys

import rough


def call(_: object) -> object:
    sys.stdout.write('{"jsonrpc": "2.0", "id": 99, "result": {"text": "')
    for _ in range(200):
        sys.stdout.write("x" * (1 << 20))
    return rough.text("never heard")


rough.serve({"tools/call": call})
