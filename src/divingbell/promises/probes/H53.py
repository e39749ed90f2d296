# mypy: ignore-errors
from preamble import frame, safe, tether, unsafe

from divingbell_inside import frames

BODIES = (
    b"", b"null", b"7", b"[]", b'"text"', b"{", b'{"name": NaN}', b'{"name": -Infinity}',
    b'{"name": 1e400}', b'{"name": "loose", "name": "loose"}', b'{"name": "\\ud800"}',
    b'{"name": "\xff"}', b"\xef\xbb\xbf{}", b"{'name': 'loose'}", b'{"name": "loose"}{}',
    b'{"name": 1' + b"0" * 5000 + b"}", b'{"name": ' + b"[" * 1_000_000,
    b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"name": ' + b'{"a":' * 70 + b"1" + b"}" * 71,
    b'{"name": "' + b"x" * (8 << 20) + b'"}', b'{"name": ["loose"]}', b'{"other": "loose"}',
)  # fmt: skip
line = tether()
for number, body in enumerate(BODIES, 1 << 40):
    line.sendall(frame(b'{"event":"call","id":%d,"name":"hostile.count"}' % number, body))
    answer, _ = frames.receive(line)
    refused = answer.get("code") in ("tool_arguments", "tool_limit") and answer.get("id") == number
    (safe if refused else unsafe)(f"{body[:40]!r}: {answer.get('code')}")
