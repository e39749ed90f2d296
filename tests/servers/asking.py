"""A server of the older protocol that asks and logs while it is being called.

It asks with the form that is its first argument, as JSON, if it has one.
"""

import json
import sys

import rough


def call(params: dict[str, dict[str, str]]) -> object:
    rough.say(
        {"method": "notifications/message", "params": {"level": "info", "data": "before asking"}}
    )
    schema: object = {"type": "object", "properties": {"name": {"type": "string"}}}
    if len(sys.argv) > 1:
        schema = json.loads(sys.argv[1])
    rough.say(
        {
            "id": "question",
            "method": "elicitation/create",
            "params": {"message": "Who are you?", "requestedSchema": schema},
        }
    )
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return rough.text(json.dumps(message.get("result") or message.get("error")))
    return rough.text("nobody")


rough.serve({"tools/call": call}, {"tools": {}, "logging": {}})
