"""The agent for editors with a script in the place of the model: FOLDER LINES SETTINGS [FILE…].

LINES are [words, code] each, as JSON, SETTINGS an object. Without FOLDER nothing is kept.
"""

import asyncio
import json
import sys
from pathlib import Path

from divingbell.agent.keeping import Conversations
from divingbell.agent.model import Model
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.settings.config import load
from divingbell.surfaces.cli import editor


async def main(folder: str, lines: str, settings: str, *files: str) -> int:
    async def script() -> Model:
        return ScriptedModel([Says(words, code) for words, code in json.loads(lines)])

    kept = Conversations(Path(folder), lambda: bytes(32)) if folder else None
    found = load(None, {"pool": 0, **json.loads(settings)})
    return await editor.serve(found, script, kept, [Path(file) for file in files])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
