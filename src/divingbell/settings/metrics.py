"""The settings of metrics: whether they are kept."""

from typing import Literal

MetricsMode = Literal["off", "on"]
"""Nothing is counted for a monitor, or it is."""
