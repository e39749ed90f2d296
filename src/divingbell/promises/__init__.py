"""What a sandbox promises: one table, read by self-check, tests, `doctor` and docs."""

from divingbell.promises.promise import GROUPS, KEPT, PREAMBLE, PROBES, PROMISES, Kind, Promise

__all__ = ["GROUPS", "KEPT", "PREAMBLE", "PROBES", "PROMISES", "Kind", "Promise"]
