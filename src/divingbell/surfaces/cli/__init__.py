"""The command: `divingbell`, or `bell` for short."""

from divingbell.surfaces.cli.app import main

__all__ = ["main"]
