"""Writes matplotlib's list of fonts, which every profile gets a copy of. It runs in a session:

    ./dev run run --get fontlist-v3.11.0.json src/divingbell/host/profiles/list_fonts.py

Making the list takes a container a quarter of a second. Only the fonts that come with matplotlib
are in it: those of the machine are not in the sandbox, and a listed font whose file is missing
makes matplotlib build the list again in every session.
"""

from pathlib import Path

import matplotlib
from matplotlib import font_manager

fonts = font_manager.fontManager
bundled = Path(matplotlib.get_data_path())
for entries in (fonts.ttflist, fonts.afmlist):
    entries[:] = sorted(
        (entry for entry in entries if Path(entry.fname).is_relative_to(bundled)),
        key=lambda entry: entry.fname,
    )
name = f"fontlist-v{font_manager.FontManager.__version__}.json"
font_manager.json_dump(fonts, name)
