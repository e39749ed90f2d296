"""A server of customers, with values of all kinds in every place that the protocol has for words.

python crm.py VALUES RECORD: VALUES is JSON with `texts` (a value of each kind in its words) and
`people` (rows with personal fields); what it gets in arguments is written to RECORD, a line each.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import rough

given = json.loads(Path(sys.argv[1]).read_text())
TEXTS: dict[str, str] = given["texts"]
PEOPLE: list[dict[str, str]] = given["people"]
ALL = "\n\n".join(TEXTS.values())
LINES = list(TEXTS.values())
PADDING = "so it goes, " * 6000
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "title": ALL}}}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


DESK = "Questions go to desk@quayside.org or +49 30 4401 2290."
"""Words of a definition: documentation, which stays as it is."""


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def note(what: str, got: Any) -> None:
    with Path(sys.argv[2]).open("a") as record:
        record.write(json.dumps([what, got]) + "\n")


def asked(method: str, params: dict[str, object]) -> dict[str, object]:
    rough.say({"id": "question", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            note(method, message)
            return rough.text(json.dumps(message.get("result") or message.get("error")))
    return rough.text("nobody")


def addresses() -> list[dict[str, str]]:
    return [
        {"uri": f"crm://people/{quote(text, safe='')}", "name": text, "title": text}
        for text in TEXTS.values()
    ]


def find(_: Any, __: Any) -> object:
    return {
        "content": [{"type": "text", "text": json.dumps(PEOPLE)}],
        "structuredContent": {"people": PEOPLE, "texts": LINES},
    }


def say(_: Any, __: Any) -> object:
    return {"content": [{"type": "text", "text": text, "_meta": {text: text}} for text in LINES]}


def measure(_: Any, __: Any) -> object:
    return {"content": [], "structuredContent": {text: [{text: text}] for text in LINES}}


def link(_: Any, __: Any) -> object:
    return {"content": [{"type": "resource_link", **each} for each in addresses()]}


def embed(_: Any, __: Any) -> object:
    uri = addresses()[0]["uri"]
    wrapped = base64.encodebytes(ALL.encode()).decode()
    parts = [
        {"uri": uri, "text": ALL},
        {"uri": uri, "blob": encoded(ALL.encode())},
        {"uri": uri, "blob": wrapped, "mimeType": "text/plain"},
        {"uri": uri, "blob": base64.urlsafe_b64encode(ALL.encode()).decode().rstrip("=")},
    ]
    return {"content": [{"type": "resource", "resource": part} for part in parts]}


def pictures() -> list[dict[str, object]]:
    drawn = b"\x89PNG\xff\0" + ALL.encode()
    wide = ALL.encode("utf-16")
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'><text>{ALL}</text></svg>".encode()
    return [
        {"type": "image", "data": encoded(drawn), "mimeType": "image/png"},
        {"type": "image", "data": encoded(svg), "mimeType": "image/svg+xml"},
        {"type": "audio", "data": encoded(drawn), "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "crm://wide", "blob": encoded(wide)}},
        {"type": "resource", "resource": {"uri": "crm://odd", "blob": "!" + encoded(drawn)}},
    ]


def picture(_: Any, __: Any) -> object:
    return {"content": pictures(), "structuredContent": {"parts": pictures()}}


def fail(_: Any, __: Any) -> object:
    blob = {"uri": "crm://long", "blob": encoded((PADDING + ALL).encode())}
    long = [{"type": "text", "text": cut_within(text)} for text in LINES]
    embedded = {"type": "resource", "resource": blob}
    return {"content": [{"type": "text", "text": ALL}, *long, embedded], "isError": True}


def cut_within(text: str, limit: int = 64_000) -> str:
    """A text that such a limit of characters is likely to cut within a value."""
    return f"{text} " * (limit // len(text) + 2)


def refuse(_: Any, __: Any) -> object:
    raise rough.Refusal(-32050, ALL, {"about": LINES, ALL: 1})


def murmur(params: Any, _: Any) -> object:
    token = (params.get("_meta") or {}).get("progressToken")
    for number, text in enumerate((*LINES, *(cut_within(text, 4000) for text in LINES))):
        news = {"progressToken": token, "progress": number, "total": 99, "message": text}
        rough.say({"method": "notifications/progress", "params": news})
        line = {"level": "warning", "logger": text[:200], "data": {text: [text]}}
        rough.say({"method": "notifications/message", "params": line})
        line = {"level": "warning", "data": text}
        rough.say({"method": "notifications/message", "params": line})
    return rough.text("murmured")


def ask(_: Any, __: Any) -> object:
    return asked("elicitation/create", {"message": ALL, "requestedSchema": SCHEMA})


def sample(_: Any, __: Any) -> object:
    content = {"type": "text", "text": ALL}
    said = [{"role": "user", "content": content}, {"role": "user", "content": pictures()[0]}]
    about = {"messages": said, "maxTokens": 9, "systemPrompt": ALL, "metadata": {ALL: ALL}}
    return asked("sampling/createMessage", about)


def echo(_: Any, arguments: Any) -> object:
    note("echo", arguments)
    return {"content": [{"type": "text", "text": json.dumps(arguments)}]}


def send(_: Any, arguments: Any) -> object:
    note("send", arguments)
    return rough.text(f"sent to {json.dumps(arguments)}")


def promise(_: Any, __: Any) -> object:
    return {"content": [], "structuredContent": {"n": ALL}}


TOOLS = (
    *(find, say, measure, link, embed, picture, fail, refuse, murmur, ask, sample),
    *(echo, send, promise),
)
BY_NAME = {tool.__name__: tool for tool in TOOLS}


def definition(name: str) -> dict[str, object]:
    made: dict[str, object] = {"name": name, "inputSchema": {"type": "object"}}
    if name == "promise":
        given = {"type": "object", "properties": {"n": {"type": "integer", "description": DESK}}}
        made |= {"description": DESK, "inputSchema": given, "outputSchema": NUMBER}
    return made


def call(params: dict[str, Any]) -> object:
    return BY_NAME[params["name"]](params, params.get("arguments") or {})


def read(params: dict[str, Any]) -> object:
    note("read", params["uri"])
    part = {"uri": params["uri"]}
    if params["uri"].endswith("missing"):
        raise rough.Refusal(-32002, f"no {ALL}", params)
    blobs = [ALL.encode(), b"\xff\0" + ALL.encode()]
    return {"contents": [{**part, "text": ALL}, *({**part, "blob": encoded(b)} for b in blobs)]}


def prompt(params: dict[str, Any]) -> object:
    note("prompt", params)
    embedded = {"uri": "crm://note", "blob": encoded(ALL.encode())}
    contents = [
        {"type": "text", "text": ALL},
        {"type": "text", "text": json.dumps(params)},
        {"type": "resource", "resource": embedded},
        *pictures(),
    ]
    messages = [{"role": "user", "content": content} for content in contents]
    return {"description": ALL, "messages": messages}


def complete(params: dict[str, Any]) -> object:
    note("complete", params)
    return {"completion": {"values": [*LINES, json.dumps(params["argument"])]}}


ARGUMENT = {"name": "topic", "description": ALL}
PROMPT = {"name": "plan", "title": ALL, "description": ALL, "arguments": [ARGUMENT]}
TEMPLATE = {"uriTemplate": "crm://people/{x}", "name": ALL, "description": ALL}

rough.serve(
    {
        "tools/list": lambda _: {"tools": list(map(definition, BY_NAME))},
        "tools/call": call,
        "resources/list": lambda _: {"resources": addresses()},
        "resources/templates/list": lambda _: {"resourceTemplates": [TEMPLATE]},
        "resources/read": read,
        "prompts/list": lambda _: {"prompts": [PROMPT]},
        "prompts/get": prompt,
        "completion/complete": complete,
        "logging/setLevel": lambda _: {},
    },
    {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
)
