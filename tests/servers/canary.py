"""A server with one word in every place that the protocol has for its words."""

import json
import sys

import rough

BIRD = "canary-5b1f"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "title": BIRD}}}
NAMES = ("say", "fail", "measure", "murmur", "ask", "sample", "echo")


def asked(method: str, params: dict[str, object]) -> str:
    rough.say({"id": "question", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return json.dumps(message.get("result") or message.get("error"))
    return "nobody"


def call(params: dict[str, object]) -> object:
    name, given = params["name"], params.get("arguments") or {}
    assert isinstance(given, dict)
    if name == "fail":
        return {**rough.text(f"no {BIRD}"), "isError": True}
    if name == "measure":
        return {"content": [], "structuredContent": {BIRD: [BIRD]}}
    if name == "murmur":
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        news = {"progressToken": token, "progress": 1, "total": 2, "message": f"half {BIRD}"}
        rough.say({"method": "notifications/progress", "params": news})
        line = {"level": "warning", "logger": BIRD, "data": f"by the way {BIRD}"}
        rough.say({"method": "notifications/message", "params": line})
    if name == "ask":
        question = {"message": f"Who is {BIRD}?", "requestedSchema": SCHEMA}
        return rough.text(asked("elicitation/create", question))
    if name == "sample":
        content = {"type": "text", "text": f"Write about {BIRD}"}
        said = [{"role": "user", "content": content}]
        return rough.text(asked("sampling/createMessage", {"messages": said, "maxTokens": 9}))
    if name == "echo":
        return rough.text(json.dumps(given))
    return rough.text(f"said {BIRD}")


RESOURCE = {"uri": f"note://{BIRD}", "name": BIRD, "title": BIRD, "description": BIRD}
ARGUMENT = {"name": "topic", "description": BIRD}
PROMPT = {"name": "plan", "title": BIRD, "description": BIRD, "arguments": [ARGUMENT]}
MESSAGE = {"role": "user", "content": {"type": "text", "text": BIRD}}

rough.serve(
    {
        "tools/list": lambda _: {
            "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
        },
        "tools/call": call,
        "resources/list": lambda _: {"resources": [RESOURCE]},
        "resources/templates/list": lambda _: {
            "resourceTemplates": [{"uriTemplate": "note://{x}", "name": BIRD, "description": BIRD}]
        },
        "resources/read": lambda params: {
            "contents": [{"uri": params["uri"], "text": f"{BIRD} at {params['uri']}"}]
        },
        "prompts/list": lambda _: {"prompts": [PROMPT]},
        "prompts/get": lambda params: {
            "description": BIRD,
            "messages": [MESSAGE, {**MESSAGE, "content": {"type": "text", "text": str(params)}}],
        },
        "completion/complete": lambda params: {
            "completion": {"values": [BIRD, json.dumps(params["argument"])]}
        },
        "logging/setLevel": lambda _: {},
    },
    {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
)
