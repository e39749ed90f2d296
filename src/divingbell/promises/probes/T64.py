# mypy: ignore-errors
from preamble import safe, unsafe

GOOD, BAD = "/srv/shared/x", "/etc/shadow"
BESIDE = (
    {"files": {"path": GOOD, "Path": BAD}},
    {"files": {"path": GOOD, "path\u200b": BAD}},
    {"files": {"path": GOOD, "path ": BAD}},
    {"files": [{"path": GOOD}, BAD]},
    {"files": [{"path": GOOD}, {"file": BAD}]},
    {"files": [{"path": GOOD}, {}]},
    {"files": [{"path": GOOD}, []]},
    {"files": [{"path": GOOD}, None]},
    {"files": [{"path": GOOD}], "Files": BAD},
    {"files": [{"path": GOOD}], "files.path": BAD},
    {"files": [{"path": GOOD}], "files[0]": {"path": BAD}},
    {"files": {"Path": GOOD}},
    {"files": []},
    {},
    {"files": {"path": GOOD}, "copy": f'{{"path": "{BAD}"}}'},
    {"files": {"path": GOOD}, "copy": [f'{{"path": "{BAD}"}}']},
    {"files": {"path": GOOD}, "copy": BAD},
    {"files": {"path": GOOD}, "links": f'["{BAD}"]'},
)
for arguments in BESIDE:
    try:
        unsafe(f"{arguments}: {call_mcp_tool('hostile.write', arguments)}")  # noqa: F821
    except ToolDenied as error:  # noqa: F821
        safe(error.code)
ALLOWED = (
    {"files": [{"path": GOOD}, {"path": [GOOD]}]},
    {"files": {"path": GOOD}, "copy": {"path": GOOD}, "links": f'["{GOOD}"]'},
)
for arguments in ALLOWED:
    call_mcp_tool("hostile.write", arguments)  # noqa: F821
