"""Writes matplotlib's list of fonts into MPLCONFIGDIR. A profile's own Python runs this once.

Building the list costs seconds, and a session can't keep it. Only the fonts that come with
matplotlib are listed: those of the machine are not in the sandbox, and a listed font whose
file is missing makes matplotlib build the list again in every session.
"""

from pathlib import Path

import matplotlib
from matplotlib import font_manager

fonts = font_manager.fontManager
bundled = Path(matplotlib.get_data_path())
for entries in (fonts.ttflist, fonts.afmlist):
    entries[:] = [entry for entry in entries if Path(entry.fname).is_relative_to(bundled)]
name = f"fontlist-v{font_manager.FontManager.__version__}.json"
font_manager.json_dump(fonts, Path(matplotlib.get_cachedir(), name))
