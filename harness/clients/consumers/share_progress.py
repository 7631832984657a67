"""The progress of a share group, by its members' journals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.chaos.waiting import until
from urteil.harness.evidence.line_file import read_lines

POLL_S = 0.5
_DELIVERED = b'["delivered",'


class ShareProgress:
    """Counts the polls that returned records to members, dead ones included."""

    def __init__(self, journals: Sequence[Path]) -> None:
        self._journals = journals
        self._read_bytes: dict[Path, int] = {}
        self._deliveries = 0

    def deliveries(self) -> int:
        """The number so far."""
        for path in self._journals:
            for line in read_lines(path, self._read_bytes.get(path, 0)) if path.exists() else ():
                self._read_bytes[path] = self._read_bytes.get(path, 0) + len(line)
                self._deliveries += line.startswith(_DELIVERED)
        return self._deliveries


def await_drained(journals: Sequence[Path], *, quiet_s: float, deadline_s: float) -> None:
    """Wait until members have received nothing for `quiet_s`, or the deadline passes."""
    progress = ShareProgress(journals)
    until(
        progress.deliveries,
        lambda _: False,
        deadline_s=deadline_s,
        poll_s=POLL_S,
        patience_s=quiet_s,
    )
