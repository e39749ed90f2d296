"""The command: `divingbell`, or `bell` for short."""

from divingbell.surfaces.cli.main import main

__all__ = ["main"]
