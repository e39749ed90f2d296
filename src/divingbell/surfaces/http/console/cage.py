"""The cage: what code shows, at an address of its own from which nothing gets out.

The code that made an output is hostile, and the browser it is shown in has a network. So the answer
carries a policy that lets it load nothing and go nowhere, and is given only into a frame or an
image of our own page. SECURITY.md says what is promised; the tests try every way that is known.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from divingbell.shares import weight
from divingbell.surfaces.http import visitor
from divingbell.surfaces.http.answers import Answer
from divingbell.surfaces.http.operations import Call, parsed_query
from divingbell.surfaces.http.problems import Refused, missing
from divingbell.surfaces.http.service import Service
from divingbell.surfaces.http.wire import Given

POLICY = (
    "sandbox; default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
# The one script that the policy lets in, by its hash. It takes WebRTC away, which no policy does,
# then runs the scripts of the output in the order in which they stand there, as text. With
# `'unsafe-inline'` a frame within this one would run scripts in a window that still has WebRTC;
# with a nonce `import()` would pass it on, and load.
RUNNER = """{
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection"])
    delete window[name];
const isScript = /^$|^(text|application)\\/(java|ecma)script$|^module$/;
addEventListener("DOMContentLoaded", () => {
    for (const each of document.querySelectorAll("script"))
        if (isScript.test(each.type.trim().toLowerCase()) && !each.src && each !== runner)
            try { (0, eval)(each.text); } catch (error) { console.error(error); }
});
const runner = document.currentScript;
}"""
_HASH = base64.b64encode(hashlib.sha256(RUNNER.encode()).digest()).decode()
SCRIPT_POLICY = POLICY.replace(
    "sandbox;", f"sandbox allow-scripts; script-src 'sha256-{_HASH}' 'unsafe-eval';"
)
# Chromium connects to where a frame wants to go before it asks the policy, and a name that is
# looked up tells as much as a request. This list is asked first: nothing is on it.
HEADERS = {
    "Connection-Allowlist": "()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
}
DESTINATIONS = {"text/html": "iframe", "image/svg+xml": "image"}
"""By MIME type: where the browser must want it. In a tab of its own it would be out of our page,
whose policy keeps frames from going elsewhere."""
STYLE = "<!doctype html><meta charset=utf-8><style>body{font:14px system-ui,sans-serif}</style>"


class CageGiven(Given):
    """Whether scripts of the output run: a person has clicked."""

    scripts: str = ""


class Cage:
    """Answers with one output of an execution, or of a conversation's cell. An application."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor.check(scope, "read")
        call = Call(self._service, scope, receive)
        given = parsed_query(scope["query_string"], CageGiven)
        output = await self._output(call)
        if call.header(b"sec-fetch-dest") != DESTINATIONS.get(output["type"]):
            words = "an output is shown within the console only: open its cell there"
            raise Refused(403, "not_in_a_frame", words)
        await caged(output, with_scripts=given.scripts == "run")(scope, receive, send)

    async def _output(self, call: Call) -> Mapping[str, Any]:
        name, event, number = (call.parameter(each) for each in ("source", "event", "number"))
        found = self._service.executions.find(call.visitor, name)
        source = found or self._service.conversations.find(call.visitor, name)
        entry = None if source is None else source.log.entry(_number(event))
        if entry is None:
            raise missing("output", f"{name}/{event}")
        told = await weight.beside(msgspec.json.decode, entry.data)
        outputs = told.get("event", told).get("outputs", [])  # of a conversation, one level deeper
        if (
            not _number(number) < len(outputs)
            or outputs[_number(number)]["type"] not in DESTINATIONS
        ):
            raise missing("output", f"{name}/{event}/{number}")
        output: Mapping[str, Any] = outputs[_number(number)]
        return output


def caged(output: Mapping[str, Any], *, with_scripts: bool) -> Answer:
    """Return the answer that holds an output: text/html or an SVG, as `Output.to_dict` has it."""
    if output["type"] == "image/svg+xml":
        policy = {"Content-Security-Policy": POLICY}
        return Answer(output["data"].encode(), 200, "image/svg+xml", HEADERS | policy)
    if not with_scripts:
        return _html(STYLE + output["data"], POLICY)
    return _html(f"{STYLE}<script>{RUNNER}</script>{output['data']}", SCRIPT_POLICY)


def _html(page: str, policy: str) -> Answer:
    headers = HEADERS | {"Content-Security-Policy": policy}
    return Answer(page.encode(), 200, "text/html; charset=utf-8", headers)


def _number(text: str) -> int:
    """Return a number of a path; one that nothing has where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 1 << 30
