"""Secrets of upstream servers: nowhere inside, and in nothing that comes back."""

import json
from dataclasses import asdict

from divingbell.promises.check.rig import expect, judged
from divingbell.promises.check.tool_rig import MIRROR, NAME, ToolRig, tool_checks

_REVEAL = f"""
from servers.{NAME} import reveal
found = [reveal(), reveal(structured=True), call_mcp_tool('{NAME}.reveal', {{}}, 'raw')]
for name, arguments in (('{NAME}.reveal', {{'fail': True}}), ('{MIRROR}.anything', {{}})):
    try:
        found.append(call_mcp_tool(name, arguments))
    except ToolError as error:
        found.append(str(error))
found += [search_tools('reveal', 'full'), get_mcp_tool_details('{NAME}.reveal')]
found += [part.text for result in found[:3] for part in getattr(result, 'content', result)
          if hasattr(part, 'text')]
print(found, [part.uri for part in found[0] if hasattr(part, 'uri')], vars(found[2]))
print(*[path.read_text() for path in __import__('pathlib').Path('/servers').rglob('*.*')])
"""


@tool_checks("T01")
async def secrets_in_the_environment(rig: ToolRig) -> str:
    async with rig.session() as session:
        await rig.value(session, f"servers.{NAME}.echo('a call was made')")
        return judged(await rig.run(session, "T01.py"))


@tool_checks("T02")
async def secrets_in_the_memory(rig: ToolRig) -> str:
    async with rig.session(memory="512MB") as session:
        await rig.value(session, f"found = servers.{NAME}.reveal()\nlen(found)")
        return judged(await rig.run(session, "T02.py"))


async def _revealed(rig: ToolRig) -> tuple[str, list[str]]:
    """All that comes back from a server that says its secret in every way, and what it tells."""
    async with rig.session() as session:
        events = [event async for event in session.stream(_REVEAL)]
        result = next(event.result for event in reversed(events) if event.result is not None)
        expect(result.status == "ok", f"the secret could not be asked for: {result.error}")
        told = [event.text or "" for event in events if event.type in ("progress", "log")]
        shown = json.dumps([result.to_dict(), *told]) + result.text
        uncaught = await session.run("reveal(fail=True)")
        return shown + json.dumps(uncaught.to_dict()), told


def _logs(rig: ToolRig) -> str:
    logs = "".join(path.read_text("utf-8", "replace") for path in rig.logs.iterdir())
    expect("Authorization" in logs, "the server's standard error was not kept")
    return logs


@tool_checks("T82")
async def disguised_secrets(rig: ToolRig) -> str:
    shown, told = await _revealed(rig)
    for text in (shown, "\n".join(told), _logs(rig), "\n".join(rig.recorder.lines)):
        expect(not rig.holds_disguised(text), "the secret came back in other clothes")
    return "blotted out in hex, base64, and escaped for addresses, JSON and HTML"


@tool_checks("T83")
async def secrets_cut_in_two(rig: ToolRig) -> str:
    await _revealed(rig)
    logs, half = _logs(rig), len(rig.secret) // 2
    expect("." * 4000 in logs, "the long line is not in the log")
    for part in (rig.secret[:half], rig.secret[half:]):
        expect(part not in logs, "half of the secret is in the log of the server")
    return "a line that is too long is cleaned before it is cut"


@tool_checks("T14")
async def reflected_secrets(rig: ToolRig) -> str:
    shown, told = await _revealed(rig)
    expect(f"[secret of {NAME}]" in shown, "the server did not reveal anything")
    expect(any(told) and "no entry with" in shown, f"too little was tried: {told} {shown[:300]}")
    expect(not rig.holds_secret(shown), "the secret came back from the server")
    states = json.dumps([asdict(state) for state in rig.bell.gateway.servers()])
    expect(not rig.holds_secret(states), "the secret is in the state of a server")
    expect(not rig.holds_secret("\n".join(rig.recorder.lines)), "the secret is in the log")
    expect(not rig.holds_secret(_logs(rig)), "the secret is in the log of the server")
    return "blotted out in results, errors, events, descriptions, files and logs"
