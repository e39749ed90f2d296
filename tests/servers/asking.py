"""A server of the older protocol that asks and logs while it is being called."""

import json
import sys

import rough


def call(params: dict[str, dict[str, str]]) -> object:
    rough.say(
        {"method": "notifications/message", "params": {"level": "info", "data": "before asking"}}
    )
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
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
