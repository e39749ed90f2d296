"""A server of the older protocol that asks a hundred times during a call, and logs as often."""

import json
import sys

import rough


def call(_: object) -> object:
    for number in range(100):
        message = {"level": "info", "data": f"question {number}"}
        rough.say({"method": "notifications/message", "params": message})
        schema = {"type": "object", "properties": {}}
        params = {"message": "Are you sure?", "requestedSchema": schema}
        rough.say({"id": f"q{number}", "method": "elicitation/create", "params": params})
    answers = []
    while len(answers) < 100:
        message = json.loads(sys.stdin.readline())
        if str(message.get("id")).startswith("q"):
            answers.append("result" in message)
    return rough.text(str(sum(answers)))


rough.serve({"tools/call": call})
