"""The counts of rare states in a run's folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

FILE = "states.json"
"""The file of a run's counts in its folder."""


class StateCounts(msgspec.Struct, kw_only=True):
    """How often a run reached each state. `not_counted`: state to the reason. `declared` is the
    digest of the declarations that were counted."""

    reached: dict[str, int]
    not_counted: dict[str, str] = {}
    declared: str = ""

    @property
    def names(self) -> list[str]:
        """The states that were reached, in the order of their declarations."""
        return [name for name, count in self.reached.items() if count]


def load_counts(run_dir: Path) -> StateCounts | None:
    """The counts in a run's folder; None if they are missing or unreadable."""
    try:
        return msgspec.json.decode((run_dir / FILE).read_bytes(), type=StateCounts)
    except (OSError, msgspec.MsgspecError):
        return None
