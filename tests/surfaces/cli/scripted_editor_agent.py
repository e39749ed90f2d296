"""The agent for editors with a script in the place of the model: FOLDER LINES SETTINGS [FILE…].

LINES are [words, code] each, as JSON, or [words, [tool, arguments]]; SETTINGS is an object.
Without FOLDER nothing is kept.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from divingbell.agent.history import Call
from divingbell.agent.keeping import Conversations
from divingbell.agent.model import Model
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.settings.config import load
from divingbell.surfaces.cli import editor
from divingbell.surfaces.cli.chat_options import Paths


def _says(words: str, code: str | list[Any] | None) -> Says:
    if isinstance(code, list):
        return Says(words, calls=(Call("direct", code[0], json.dumps(code[1])),))
    return Says(words, code)


async def main(folder: str, lines: str, settings: str, *files: str) -> int:
    async def script() -> Model:
        return ScriptedModel([_says(*line) for line in json.loads(lines)])

    kept = Conversations(Path(folder), lambda: bytes(32)) if folder else None
    found = load(None, {"pool": 0, **json.loads(settings)})
    paths = Paths(tuple(Path(file) for file in files))
    return await editor.serve(found, script, kept, paths)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
