"""Rich display: what IPython would show, as parts with a MIME type.

A model reads text and sees images, and so do most terminals. What is neither (HTML, SVG, the
JSON of a chart) is kept as a file, and its text says what it was and where it is.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from divingbell_inside import drawing, drawn_texts, frames, layout
from divingbell_inside.shelf import NotKept

MAX_PARTS = 16
MAX_TEXT = frames.MAX_DISPLAY_TEXT
"""Of this the host shows the start and the end, and keeps all. Of more, we do it ourselves."""
MAX_START_AND_END = 1 << 15
MAX_BODY = frames.MAX_BODY // 2
MAX_NAME = 200
TEXT, SVG = "text/plain", "image/svg+xml"
_BEST_KEPT = ("text/html", SVG, "application/pdf", "text/markdown", "text/latex")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_DRAWN = (SVG, "application/pdf", "application/vnd.", "audio/", "video/")
_OBJECT = re.compile(r"<(?:[\w.]*\.)?(\w+)(?: object)?(?: at 0x[0-9a-f]+)?>")

Keep = Callable[[str, bytes], str]
"""Keeps a form of a display as a file; returns its name in /workspace/.outputs."""


class Part(NamedTuple):
    """One form of a display."""

    kind: str
    raw: bytes
    file: str = ""
    """Its name in /workspace/.outputs, where it is kept."""


def parts_of(bundle: dict[str, Any], keep: Keep) -> list[Part]:
    """Turn a MIME bundle of IPython's into parts: text, one image, and what else there is."""
    forms = {
        str(kind).partition(";")[0].strip()[:MAX_NAME]: data
        for kind, data in list(bundle.items())[:MAX_PARTS]
    }
    found = {kind: _raw(kind, data) for kind, data in forms.items()}
    if found.keys() == {TEXT} and len(found[TEXT]) <= MAX_TEXT:
        return [Part(TEXT, found[TEXT])]
    files: dict[str, str] = {}
    image = _choose_image(found)
    if image is not None:
        _keep_image(image, found, files, keep)
    elif unseen := _unseen(found):
        found[TEXT] = _kept(unseen, found, files, keep)
    if len(found.get(TEXT, b"")) > MAX_TEXT:
        found[TEXT] = _shortened(found[TEXT], keep)
    parts = _fitting([Part(kind, raw, files.get(kind, "")) for kind, raw in found.items()])
    return parts + [_texts_in(part.raw) for part in parts if _has_texts(part.raw)]


def _has_texts(raw: bytes) -> bool:
    return isinstance(raw, drawn_texts.Picture) and raw.texts is not None


def _texts_in(picture: Any) -> Part:
    return Part(drawn_texts.KIND, picture.texts)


def _choose_image(found: dict[str, bytes]) -> str | None:
    """Leave one image, of PNG and JPEG of the same picture for instance; return its type."""
    if SVG in found and not found.keys() & set(layout.IMAGES):
        png = drawing.png_of_svg(found[SVG])
        if png is not None:
            found["image/png"] = png
    seen = [kind for kind in layout.IMAGES if kind in found]
    for kind in seen[1:]:
        del found[kind]
    return seen[0] if seen else None


def _keep_image(image: str, found: dict[str, bytes], files: dict[str, str], keep: Keep) -> None:
    if _says_nothing(found.get(TEXT)):
        # "<Figure size 640x480 with 1 Axes>" says less than the picture beside it.
        found.pop(TEXT, None)
    size = len(found[image])
    try:
        files[image] = keep(image, found[image])
        where = f"it is kept in {layout.OUTPUTS}/{files[image]}"
    except NotKept as error:
        where = str(error)
    if size > MAX_BODY:
        found[TEXT] = f"[{image}, {size:,} bytes: too large to show; {where}]".encode()


def _unseen(found: dict[str, bytes]) -> str | None:
    """Return the form to keep of a display that has no image, if its text does not do."""
    silent = _says_nothing(found.get(TEXT))
    if silent and "application/json" in found:
        found[TEXT] = found["application/json"]
        return None
    others = [kind for kind in found if kind not in (TEXT, _WIDGET)]
    if not others or not (silent or any(kind.startswith(_DRAWN) for kind in others)):
        return None
    return next((kind for kind in _BEST_KEPT if kind in others), others[0])


def _kept(kind: str, found: dict[str, bytes], files: dict[str, str], keep: Keep) -> bytes:
    """Keep a form; return what a reader is told in its place."""
    try:
        files[kind] = keep(kind, found[kind])
        where = f"kept in {layout.OUTPUTS}/{files[kind]}"
    except NotKept as error:
        where = str(error)
    name = _name_of(found.get(TEXT, b""))
    return f"[{name}{kind}, {len(found[kind]):,} bytes, can't be seen here; {where}]".encode()


def _shortened(raw: bytes, keep: Keep) -> bytes:
    try:
        where = f"all of it is in {layout.OUTPUTS}/{keep(TEXT, raw)}"
    except NotKept as error:
        where = str(error)
    return cut(raw.decode("utf-8", "replace"), MAX_START_AND_END, f"; {where}").encode()


def _fitting(parts: list[Part]) -> list[Part]:
    """Leave out forms that make it too large for a frame; text goes before all others."""
    room = MAX_BODY - sum(len(part.raw) for part in parts if part.kind == TEXT)
    fitting = []
    for part in sorted(parts, key=lambda part: not part.file):
        if part.kind != TEXT and len(part.raw) <= room:
            room -= len(part.raw)
            fitting.append(part.kind)
    return [part for part in parts if part.kind == TEXT or part.kind in fitting]


def _says_nothing(text: bytes | None) -> bool:
    """Whether it is at most the name of an object, such as `<IPython.core.display.HTML object>`."""
    return text is None or (text.startswith(b"<") and text.endswith(b">") and b"\n" not in text)


def _name_of(text: bytes) -> str:
    first = text.decode("utf-8", "replace").strip().partition("\n")[0]
    match = _OBJECT.fullmatch(first)
    name = match[1] if match else first.removeprefix("<").removesuffix(">")[:MAX_NAME]
    return f"{name}: " if name else ""


def _raw(kind: str, data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if kind.startswith("image/") and kind != SVG and isinstance(data, str):
        try:
            return base64.b64decode(data, validate=False)
        except binascii.Error:
            return data.encode("utf-8", "backslashreplace")
    text = data if isinstance(data, str) else json.dumps(data, default=repr)
    return text.encode("utf-8", "backslashreplace")


def cut(text: str, limit: int, more: str = "") -> str:
    """Shorten text that is far too long, and say so in the text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out:,} characters left out{more} …]\n{text[-half:]}"


def pack_display(parts: list[Part], **more: str | bool | None) -> tuple[frames.Header, bytes]:
    """Return header and body of a display event."""
    header: frames.Header = {
        "event": "display",
        "parts": [
            [part.kind, len(part.raw), part.file] if part.file else [part.kind, len(part.raw)]
            for part in parts
        ],
        **{key: value for key, value in more.items() if value is not None},
    }
    return header, b"".join(part.raw for part in parts)


def is_too_long(bundle: dict[str, Any]) -> bool:
    """Whether of its text only the start and the end are shown."""
    return len(_raw(TEXT, bundle.get(TEXT, ""))) > MAX_TEXT
