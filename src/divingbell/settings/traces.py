"""The settings of traces: whether they are made."""

from typing import Literal

TracesMode = Literal["off", "on"]
"""No spans are made, or one for each cell and each call of a tool."""
